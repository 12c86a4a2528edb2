//! The tokens of SQL conditions and of statements that create tables.

use coldframe_encoding::{Error, Result};

/// The kind of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenKind {
    /// `12`, `1.5`, `.5e-3`
    Number,
    /// `X'00ff'`
    Hex,
    /// `'text'`, with inner quotes doubled
    Text,
    /// A name in quotes, `` `x` `` or `"x"`
    Quoted,
    /// A name or a keyword.
    Name,
    /// An operator, bracket or comma.
    Sign,
    /// The end of the text.
    #[default]
    End,
}

/// A token of a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: TokenKind,
    /// Its text.
    pub text: &'a str,
    /// The token's byte offset in the text.
    pub at: usize,
}

impl Token<'_> {
    /// Whether the token is the keyword `word`, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Name && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether the token is the operator, bracket or comma `sign`.
    pub fn is_sign(&self, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text == sign
    }

    /// The text between the quotes.
    pub fn unquoted(&self) -> String {
        let mut chars = self.text.chars();
        let quote = chars.next().unwrap_or_default().to_string();
        chars.next_back();
        chars.as_str().replace(&quote.repeat(2), &quote)
    }

    /// The bytes of a hex literal.
    pub fn bytes(&self) -> Vec<u8> {
        let digits: Vec<u8> = self
            .text
            .chars()
            .skip(1)
            .filter_map(|c| c.to_digit(16))
            .filter_map(|d| d.try_into().ok())
            .collect();
        digits.chunks_exact(2).filter_map(|pair| Some(pair.first()? << 4 | pair.last()?)).collect()
    }
}

/// The number of the character at a byte offset, counted from 1.
pub fn position(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).chars().count() + 1
}

/// The tokens of a text, followed by the end token. Errors call the text `what`.
pub fn tokens<'a>(what: &str, text: &'a str) -> Result<Vec<Token<'a>>> {
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.is_empty() {
            all.push(Token { kind: TokenKind::End, text: "", at });
            return Ok(all);
        }
        let Some((kind, length)) = next_token(trimmed) else {
            let shown: String = trimmed.chars().take(10).collect();
            let position = position(text, at);
            return Err(Error::invalid(format!(
                "{what} {text:?}, position {position}: cannot read {shown:?}"
            )));
        };
        all.push(Token { kind, text: trimmed.get(..length).unwrap_or_default(), at });
        at += length;
    }
}

/// The kind and length of the token at the start of a text.
fn next_token(text: &str) -> Option<(TokenKind, usize)> {
    let first = text.chars().next()?;
    let second = text.chars().nth(1);
    match first {
        '0'..='9' => number(text).map(|n| (TokenKind::Number, n)),
        '.' if second.is_some_and(|c| c.is_ascii_digit()) => number(text).map(|n| (TokenKind::Number, n)),
        'x' | 'X' if second == Some('\'') && hex(text).is_some() => hex(text).map(|n| (TokenKind::Hex, n)),
        '\'' => quoted(text, '\'').map(|n| (TokenKind::Text, n)),
        '`' | '"' => quoted(text, first).filter(|n| *n > 2).map(|n| (TokenKind::Quoted, n)),
        c if c.is_alphabetic() || c == '_' => {
            let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
            Some((TokenKind::Name, end.unwrap_or(text.len())))
        }
        _ => ["<=", ">=", "<>", "!=", "==", "=", "<", ">", "(", ")", ",", ".", "-", "+", "[", "]"]
            .into_iter()
            .find(|sign| text.starts_with(sign))
            .map(|sign| (TokenKind::Sign, sign.len())),
    }
}

/// The length of a number that is not followed by a letter, digit or underscore.
fn number(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    (!bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')).then_some(end)
}

/// The length of `X'..'` with an even number of hex digits.
fn hex(text: &str) -> Option<usize> {
    let digits = text.get(2..)?;
    let length = digits.find('\'')?;
    let digits = digits.get(..length)?;
    (length % 2 == 0 && digits.bytes().all(|b| b.is_ascii_hexdigit())).then_some(length + 3)
}

/// The length of a quoted text, with inner quotes doubled.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + 1);
        }
    }
    None
}
