//! Creates files message by message.

use bytes::Bytes;
use coldframe_encoding::codec::{Algorithm, Compressor};
use coldframe_orc::Kind;
use coldframe_orc::proto::{self, Footer, PostScript, StripeInformation, Type};

/// A file without a codec and with one stripe of the given parts, which the footer may list more than once.
pub(crate) struct Crafted {
    pub(crate) types: Vec<Type>,
    pub(crate) streams: Vec<(u32, u32, Vec<u8>)>,
    pub(crate) encodings: Vec<proto::ColumnEncoding>,
    pub(crate) rows: u64,
    pub(crate) stride: Option<u32>,
    pub(crate) timezone: Option<String>,
    pub(crate) variants: Vec<proto::StripeEncryptionVariant>,
    pub(crate) times: usize,
}

impl Crafted {
    /// Creates a file with one column of `kind`.
    pub(crate) fn new(kind: Kind, rows: u64, streams: Vec<(u32, u32, Vec<u8>)>) -> Self {
        let root = Type {
            kind: Some(Kind::Struct.number()),
            subtypes: vec![1],
            field_names: vec!["id".to_owned()],
            ..Type::default()
        };
        let column = Type { kind: Some(kind.number()), ..Type::default() };
        let direct = proto::ColumnEncoding { kind: Some(2), ..proto::ColumnEncoding::default() };
        Self {
            types: vec![root, column],
            streams,
            encodings: vec![direct; 2],
            rows,
            stride: None,
            timezone: None,
            variants: Vec::new(),
            times: 1,
        }
    }

    pub(crate) fn bytes(&self) -> Bytes {
        let mut file = b"ORC".to_vec();
        let (mut index, mut data) = (0, 0);
        let mut footer = proto::StripeFooter {
            columns: self.encodings.clone(),
            writer_timezone: self.timezone.clone(),
            encryption: self.variants.clone(),
            ..Default::default()
        };
        for (kind, column, bytes) in &self.streams {
            let length = bytes.len() as u64;
            *if *kind == 6 { &mut index } else { &mut data } += length;
            file.extend(bytes);
            footer.streams.push(proto::Stream {
                kind: Some(*kind),
                column: Some(*column),
                length: Some(length),
            });
        }
        let footer = proto::encode(&footer);
        let stripe = StripeInformation {
            offset: Some(3),
            index_length: Some(index),
            data_length: Some(data),
            footer_length: Some(footer.len() as u64),
            number_of_rows: Some(self.rows),
            ..StripeInformation::default()
        };
        file.extend(footer);
        tailed(
            file,
            &Footer {
                stripes: vec![stripe; self.times],
                types: self.types.clone(),
                number_of_rows: Some(self.rows * self.times as u64),
                row_index_stride: self.stride,
                ..Footer::default()
            },
        )
    }
}

/// Appends a tail with `footer` to `file`, without a codec.
pub(crate) fn tailed(mut file: Vec<u8>, footer: &Footer) -> Bytes {
    let footer = proto::encode(footer);
    let postscript = proto::encode(&PostScript {
        footer_length: Some(footer.len() as u64),
        version: vec![0, 12],
        magic: Some("ORC".to_owned()),
        ..PostScript::default()
    });
    file.extend(footer);
    let length = u8::try_from(postscript.len()).unwrap();
    file.extend(postscript);
    file.push(length);
    file.into()
}

/// A file without stripes whose footer is `footer` in zlib chunks.
pub(crate) fn compressed(footer: &[u8]) -> Bytes {
    let mut stored = Vec::new();
    for block in footer.chunks(256 << 10) {
        let mut chunk = Vec::new();
        Compressor::new().compress(Algorithm::Deflate, None, block, &mut chunk).unwrap();
        stored.extend(&u32::try_from(chunk.len() << 1).unwrap().to_le_bytes()[..3]);
        stored.extend(chunk);
    }
    let postscript = proto::encode(&PostScript {
        footer_length: Some(stored.len() as u64),
        compression: Some(1),
        compression_block_size: Some(256 << 10),
        version: vec![0, 12],
        magic: Some("ORC".to_owned()),
        ..PostScript::default()
    });
    let length = u8::try_from(postscript.len()).unwrap();
    [b"ORC".to_vec(), stored, postscript, vec![length]].concat().into()
}
