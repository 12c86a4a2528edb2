//! The schema: the footer's elements as a tree with levels, and its conversion to and from Arrow types.
//!
//! | Redfile | Arrow |
//! |---|---|
//! | required X, optional X | X, not null or nullable |
//! | repeated X | list<element: X not null>, not null |
//! | group | struct |
//! | group (LIST) { repeated group list { X element } } | list<element: X>, nullable as the outer group is |
//! | BOOLEAN, INT32, INT64, FLOAT, DOUBLE | bool, int32, int64, float, double |
//! | INT96 | fixed-size binary of 12 bytes, or timestamp[ns] if requested |
//! | BYTE_ARRAY | binary; string if the converted type is UTF8 (and the first page is UTF-8) or if requested |
//!
//! LIST is an annotation that Parquet added later. It is written if an Arrow list is nullable or has nulls,
//! which a repeated field alone cannot express. No old file has this annotation.
//!
//! A leaf's definition level counts the optional and repeated nodes on its path that are present; its
//! repetition level is the level of the repeated node at which a value continues (Dremel, section 4.1).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, SchemaRef, TimeUnit};
use coldframe_core::types::views;
use coldframe_core::{Error, ErrorKind, Limits, Result};

use crate::layout::metadata::{CONVERTED_LIST, CONVERTED_UTF8, Children, Repetition, SchemaElement, Type};

/// Name of a list's item field in Arrow, and of the innermost node of a LIST group.
pub(crate) const ELEMENT: &str = "element";
/// Name of the repeated node of a LIST group.
pub(crate) const LIST: &str = "list";

/// Types that the file does not determine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeOptions {
    /// Whether all or no byte arrays are text. If absent, byte arrays that are UTF8 by the file are text.
    pub(crate) text: Option<bool>,
    /// Whether INT96 is a timestamp: nanoseconds of the day, then the Julian day.
    pub int96_timestamp: bool,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The node's name.
    pub(crate) name: String,
    /// How often the node occurs in its parent.
    pub(crate) repetition: Repetition,
    /// What the type represents.
    pub(crate) converted_type: Option<i32>,
    /// The smallest definition level at which the node is present.
    pub(crate) definition: u8,
    /// The node's maximum repetition level.
    pub(crate) repetition_level: u8,
    /// The node's leaves, as indexes into [`Schema::leaves`].
    pub(crate) leaves: Range<usize>,
    /// A leaf or a group.
    pub(crate) kind: NodeKind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeKind {
    /// A leaf, with its Arrow type.
    Leaf(Type, DataType),
    /// A group and its children.
    Group(Vec<Node>),
}

/// A leaf, whose values are in column chunks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    /// Names, starting at the root's child.
    pub(crate) path: Vec<String>,
    /// The type in the file.
    pub(crate) physical_type: Type,
    /// Maximum definition level.
    pub(crate) max_definition: u8,
    /// Maximum repetition level.
    pub(crate) max_repetition: u8,
}

impl Leaf {
    /// The path with dots.
    pub(crate) fn name(&self) -> String {
        self.path.join(".")
    }
}

/// The schema of a file.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    /// The root's name.
    pub(crate) name: String,
    /// The root's children: the columns.
    pub(crate) fields: Vec<Node>,
    /// All leaves, depth first: the order of column chunks.
    pub(crate) leaves: Vec<Leaf>,
    /// The columns in Arrow.
    pub(crate) arrow: SchemaRef,
}

impl Node {
    /// The repeated group and the element of a group marked as LIST, if it has the structure of a list.
    pub(crate) fn list_element(&self) -> Option<(&Node, &Node)> {
        if self.converted_type != Some(CONVERTED_LIST) || self.repetition == Repetition::Repeated {
            return None;
        }
        let NodeKind::Group(children) = &self.kind else { return None };
        let [repeated] = children.as_slice() else { return None };
        let NodeKind::Group(elements) = &repeated.kind else { return None };
        let [element] = elements.as_slice() else { return None };
        let fits = repeated.repetition == Repetition::Repeated && element.repetition != Repetition::Repeated;
        fits.then_some((repeated, element))
    }

    /// The type of one occurrence.
    pub(crate) fn item_type(&self) -> DataType {
        if let Some((_, element)) = self.list_element() {
            return DataType::List(Arc::new(element.field().with_name(ELEMENT)));
        }
        match &self.kind {
            NodeKind::Leaf(_, data_type) => data_type.clone(),
            NodeKind::Group(children) => DataType::Struct(children.iter().map(Node::field).collect()),
        }
    }

    /// The node as an Arrow field.
    pub(crate) fn field(&self) -> Field {
        match self.repetition {
            Repetition::Required => Field::new(&self.name, self.item_type(), false),
            Repetition::Optional => Field::new(&self.name, self.item_type(), true),
            Repetition::Repeated => {
                let item = Field::new(ELEMENT, self.item_type(), false);
                Field::new(&self.name, DataType::List(Arc::new(item)), false)
            }
        }
    }

    /// The node with only the children that `field` has, and with views where `field` has views.
    pub(crate) fn prune(&self, field: &Field) -> Result<Node> {
        if self.field().data_type() == field.data_type() {
            return Ok(self.clone());
        }
        let mismatch = || Error::schema(format!("column `{}` has no part {}", self.name, field.data_type()));
        let item = match (self.repetition, field.data_type()) {
            (Repetition::Repeated, DataType::List(item)) => item.data_type(),
            (Repetition::Repeated, _) => return Err(mismatch()),
            (_, other) => other,
        };
        let mut pruned = self.clone();
        if let NodeKind::Leaf(_, own) = &mut pruned.kind {
            *own = views::view(own).filter(|view| view == item).ok_or_else(mismatch)?;
            return Ok(pruned);
        }
        if let Some((_, element)) = self.list_element() {
            let DataType::List(wanted) = item else { return Err(mismatch()) };
            let element = element.prune(wanted)?;
            if let NodeKind::Group(children) = &mut pruned.kind
                && let [repeated] = children.as_mut_slice()
            {
                repeated.kind = NodeKind::Group(vec![element]);
            }
            return Ok(pruned);
        }
        let (NodeKind::Group(children), DataType::Struct(wanted)) = (&self.kind, item) else {
            return Err(mismatch());
        };
        pruned.kind = NodeKind::Group(prune_all(children, wanted)?);
        Ok(pruned)
    }

    fn text_leaves(&self, out: &mut Vec<usize>) {
        match &self.kind {
            NodeKind::Leaf(_, DataType::Utf8) => out.push(self.leaves.start),
            NodeKind::Leaf(..) => {}
            NodeKind::Group(children) => children.iter().for_each(|c| c.text_leaves(out)),
        }
    }

    fn make_binary(&mut self, places: &BTreeSet<usize>) {
        match &mut self.kind {
            NodeKind::Leaf(_, data_type) if places.contains(&self.leaves.start) => {
                *data_type = DataType::Binary
            }
            NodeKind::Leaf(..) => {}
            NodeKind::Group(children) => children.iter_mut().for_each(|c| c.make_binary(places)),
        }
    }

    /// The leaves of the node, in order: their indexes and types.
    pub(crate) fn typed_leaves<'a>(&'a self, out: &mut Vec<(usize, &'a DataType)>) {
        match &self.kind {
            NodeKind::Leaf(_, data_type) => out.push((self.leaves.start, data_type)),
            NodeKind::Group(children) => children.iter().for_each(|c| c.typed_leaves(out)),
        }
    }

    /// The indexes of the leaves of the node, in order.
    pub(crate) fn leaf_places(&self, out: &mut Vec<usize>) {
        match &self.kind {
            NodeKind::Leaf(..) => out.push(self.leaves.start),
            NodeKind::Group(children) => children.iter().for_each(|c| c.leaf_places(out)),
        }
    }
}

/// The nodes for the fields in `wanted`, each with only the parts that its field has. Both lists are in the
/// order of the file. Nodes with the same name are separate fields; if only one of these fields is requested,
/// it is selected by its type.
pub(crate) fn prune_all<'a>(
    nodes: &[Node],
    wanted: impl IntoIterator<Item = &'a FieldRef>,
) -> Result<Vec<Node>> {
    let mut rest = nodes.iter();
    wanted
        .into_iter()
        .map(|field| {
            let mut mismatch = None;
            for node in rest.by_ref().filter(|n| n.name == *field.name()) {
                match node.prune(field) {
                    Ok(pruned) => return Ok(pruned),
                    Err(e) => mismatch = Some(e),
                }
            }
            Err(mismatch.unwrap_or_else(|| Error::schema(format!("no column `{}`", field.name()))))
        })
        .collect()
}

impl Schema {
    /// The tree of the footer's elements.
    pub(crate) fn from_elements(
        elements: &[SchemaElement],
        options: TypeOptions,
        limits: &Limits,
        file_len: u64,
    ) -> Result<Self> {
        let leaves = elements.iter().filter(|e| e.physical_type.is_some()).count();
        limits.columns("the schema", leaves as u64)?;
        let root = elements.first().ok_or_else(|| Error::corrupt("expected a root, found no element"))?;
        let mut tree = Tree {
            elements,
            used: vec![false; elements.len()],
            next: 1,
            options,
            limits,
            file_len,
            paths: 0,
            leaves: Vec::new(),
        };
        if root.children == Children::None && elements.iter().any(|e| e.children != Children::None) {
            return Err(Error::unsupported(
                "the layout of one commit whose elements name their parent instead of their children",
            ));
        }
        if let Some(place) = tree.used.first_mut() {
            *place = true;
        }
        let fields = tree.children(root, &NodeContext::default())?;
        if let Some(i) = tree.used.iter().position(|used| !used) {
            return Err(Error::corrupt(format!("expected element {i} to have a parent, found none")));
        }
        Ok(Self::new(root.name.clone(), fields, tree.leaves))
    }

    fn new(name: String, fields: Vec<Node>, leaves: Vec<Leaf>) -> Self {
        let arrow: Fields = fields.iter().map(Node::field).collect();
        Self { name, fields, leaves, arrow: Arc::new(arrow_schema::Schema::new(arrow)) }
    }

    /// The tree for Arrow columns. Its types in Arrow ([`Self::arrow`]) are the types in `schema`, except for
    /// names of list items, integers of fewer than 32 bits, and large and view types.
    pub(crate) fn from_arrow(name: &str, schema: &arrow_schema::Schema, limits: &Limits) -> Result<Self> {
        let mut leaves = Vec::new();
        let fields = schema.fields().iter().map(|f| {
            let node = from_field(f, f.name(), true, &NodeContext::default(), limits, &mut leaves);
            node.map_err(|e| too_much(e, f.name()))
        });
        let fields = fields.collect::<Result<_>>()?;
        limits.columns("the schema", leaves.len() as u64).map_err(|e| too_much(e, name))?;
        Ok(Self::new(name.to_owned(), fields, leaves))
    }

    /// The indexes of leaves that are text.
    pub(crate) fn text_leaves(&self) -> Vec<usize> {
        let mut places = Vec::new();
        self.fields.iter().for_each(|f| f.text_leaves(&mut places));
        places
    }

    /// Makes the leaves at `places` binary.
    pub(crate) fn make_binary(&mut self, places: &BTreeSet<usize>) {
        if places.is_empty() {
            return;
        }
        self.fields.iter_mut().for_each(|f| f.make_binary(places));
        let arrow: Fields = self.fields.iter().map(Node::field).collect();
        self.arrow = Arc::new(arrow_schema::Schema::new(arrow));
    }

    /// The elements, depth first, with the number of children.
    pub(crate) fn elements(&self) -> Vec<SchemaElement> {
        let root = SchemaElement {
            name: self.name.clone(),
            children: Children::Count(count(self.fields.len())),
            ..SchemaElement::default()
        };
        let mut elements = vec![root];
        self.fields.iter().for_each(|node| put_elements(node, &mut elements));
        elements
    }
}

/// A limit that this schema exceeds is an error of the caller, not of a file.
fn too_much(e: Error, name: &str) -> Error {
    match e.kind() {
        ErrorKind::LimitExceeded { .. } => Error::schema(format!("`{name}`: {}", e.reason())),
        _ => e,
    }
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn put_elements(node: &Node, out: &mut Vec<SchemaElement>) {
    let mut element = SchemaElement {
        physical_type: None,
        repetition: Some(node.repetition),
        name: node.name.clone(),
        children: Children::None,
        converted_type: node.converted_type,
    };
    match &node.kind {
        NodeKind::Leaf(physical, _) => {
            element.physical_type = Some(*physical);
            out.push(element);
        }
        NodeKind::Group(children) => {
            element.children = Children::Count(count(children.len()));
            out.push(element);
            children.iter().for_each(|c| put_elements(c, out));
        }
    }
}

/// The context of a node, which determines its levels and its path.
#[derive(Clone, Default)]
struct NodeContext {
    path: Vec<String>,
    /// Memory that the path takes.
    bytes: u64,
    definition: u8,
    repetition: u8,
}

/// Memory that a name takes in a path.
fn path_bytes(name: &str) -> u64 {
    (size_of::<String>() + name.len()) as u64
}

impl NodeContext {
    /// The context of a child.
    fn child(&self, name: &str, repetition: Repetition, limits: &Limits) -> Result<Self> {
        let mut path = self.path.clone();
        path.push(name.to_owned());
        limits.depth("the schema", path.len() as u64)?;
        let definition = self.definition.checked_add(u8::from(repetition != Repetition::Required));
        let level = self.repetition.checked_add(u8::from(repetition == Repetition::Repeated));
        match definition.zip(level) {
            Some((definition, repetition)) => {
                let bytes = self.bytes.saturating_add(path_bytes(name));
                Ok(Self { path, bytes, definition, repetition })
            }
            None => Err(Error::unsupported("more than 255 nested optional and repeated groups")),
        }
    }
}

/// Elements being built into a tree.
struct Tree<'a> {
    elements: &'a [SchemaElement],
    used: Vec<bool>,
    /// The next element, if elements state only the number of their children.
    next: usize,
    options: TypeOptions,
    limits: &'a Limits,
    file_len: u64,
    /// Bytes of all paths so far: each path includes the names of all enclosing groups.
    paths: u64,
    leaves: Vec<Leaf>,
}

impl Tree<'_> {
    fn children(&mut self, parent: &SchemaElement, place: &NodeContext) -> Result<Vec<Node>> {
        match &parent.children {
            Children::None => Err(Error::corrupt(format!(
                "element `{}`: expected a type or children, found neither",
                parent.name
            ))),
            Children::Count(n) => {
                let left = self.elements.len().saturating_sub(self.next);
                let n = usize::try_from(*n).ok().filter(|n| *n <= left).ok_or_else(|| {
                    Error::corrupt(format!(
                        "element `{}`: expected 0 to {left} children, found {n}",
                        parent.name
                    ))
                })?;
                (0..n)
                    .map(|_| {
                        let at = self.next;
                        self.next += 1;
                        self.node(at, place)
                    })
                    .collect()
            }
            Children::Indices(places) => {
                places.iter().map(|i| self.node(usize::try_from(*i).unwrap_or(usize::MAX), place)).collect()
            }
        }
    }

    fn node(&mut self, at: usize, parent: &NodeContext) -> Result<Node> {
        let elements = self.elements;
        let free = self.used.get_mut(at).filter(|used| !**used);
        let (Some(element), Some(used)) = (elements.get(at), free) else {
            return Err(Error::corrupt(format!("expected an element without a parent, found element {at}")));
        };
        *used = true;
        let repetition = element.repetition.unwrap_or(Repetition::Required);
        self.paths = self.paths.saturating_add(parent.bytes).saturating_add(path_bytes(&element.name));
        self.limits.decoded("the paths of the schema", self.paths, self.file_len)?;
        let place = parent.child(&element.name, repetition, self.limits)?;
        let first = self.leaves.len();
        let kind = match element.physical_type {
            Some(physical) => {
                self.leaves.push(leaf(&place, physical));
                let marked = element.converted_type == Some(CONVERTED_UTF8);
                let text = self.options.text.unwrap_or(marked);
                NodeKind::Leaf(physical, leaf_type(physical, text, self.options))
            }
            None => {
                let children = self.children(element, &place)?;
                if children.is_empty() {
                    return Err(Error::corrupt(format!(
                        "group `{}`: expected children, found none",
                        element.name
                    )));
                }
                NodeKind::Group(children)
            }
        };
        Ok(Node {
            name: element.name.clone(),
            repetition,
            converted_type: element.converted_type,
            definition: place.definition,
            repetition_level: place.repetition,
            leaves: first..self.leaves.len(),
            kind,
        })
    }
}

fn leaf(place: &NodeContext, physical_type: Type) -> Leaf {
    let (max_definition, max_repetition) = (place.definition, place.repetition);
    Leaf { path: place.path.clone(), physical_type, max_definition, max_repetition }
}

fn leaf_type(physical: Type, text: bool, options: TypeOptions) -> DataType {
    match physical {
        Type::Boolean => DataType::Boolean,
        Type::Int32 => DataType::Int32,
        Type::Int64 => DataType::Int64,
        Type::Int96 if options.int96_timestamp => DataType::Timestamp(TimeUnit::Nanosecond, None),
        Type::Int96 => DataType::FixedSizeBinary(12),
        Type::Float => DataType::Float32,
        Type::Double => DataType::Float64,
        Type::ByteArray if text => DataType::Utf8,
        Type::ByteArray => DataType::Binary,
    }
}

/// The node for a field. `bare`: whether a list may be only a repeated field (not inside a LIST group).
fn from_field(
    field: &FieldRef,
    name: &str,
    bare: bool,
    parent: &NodeContext,
    limits: &Limits,
    leaves: &mut Vec<Leaf>,
) -> Result<Node> {
    let first = leaves.len();
    let optional = if field.is_nullable() { Repetition::Optional } else { Repetition::Required };
    let (repetition, of) = match list_item(field.data_type()) {
        // A repeated field alone cannot express a null list, a null item, or a list of lists.
        Some(item)
            if bare
                && !field.is_nullable()
                && !item.is_nullable()
                && list_item(item.data_type()).is_none() =>
        {
            (Repetition::Repeated, plain_type(item.data_type()))
        }
        _ => (optional, plain_type(field.data_type())),
    };
    let place = parent.child(name, repetition, limits)?;
    let (kind, converted_type) = if let Some(item) = list_item(of) {
        (NodeKind::Group(vec![repeated_group(item, &place, limits, leaves)?]), Some(CONVERTED_LIST))
    } else if let DataType::Struct(fields) = of {
        if fields.is_empty() {
            let path = place.path.join(".");
            return Err(Error::schema(format!("column `{path}`: Redfile has no group without children")));
        }
        let children = fields.iter().map(|f| from_field(f, f.name(), true, &place, limits, leaves));
        (NodeKind::Group(children.collect::<Result<_>>()?), None)
    } else {
        let physical = physical_type(of).ok_or_else(|| {
            let path = place.path.join(".");
            Error::unsupported(format!("column `{path}`: writing {of} to Redfile, which has no such type"))
        })?;
        leaves.push(leaf(&place, physical));
        let text = matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let options = TypeOptions { int96_timestamp: matches!(of, DataType::Timestamp(..)), text: None };
        (NodeKind::Leaf(physical, leaf_type(physical, text, options)), text.then_some(CONVERTED_UTF8))
    };
    Ok(Node {
        name: name.to_owned(),
        repetition,
        converted_type,
        definition: place.definition,
        repetition_level: place.repetition,
        leaves: first..leaves.len(),
        kind,
    })
}

/// The repeated group between a LIST group and its elements.
fn repeated_group(
    item: &FieldRef,
    list: &NodeContext,
    limits: &Limits,
    leaves: &mut Vec<Leaf>,
) -> Result<Node> {
    let first = leaves.len();
    let place = list.child(LIST, Repetition::Repeated, limits)?;
    let element = from_field(item, ELEMENT, false, &place, limits, leaves)?;
    Ok(Node {
        name: LIST.to_owned(),
        repetition: Repetition::Repeated,
        converted_type: None,
        definition: place.definition,
        repetition_level: place.repetition,
        leaves: first..leaves.len(),
        kind: NodeKind::Group(vec![element]),
    })
}

/// The item of a list of any kind; a map is a list of its entries.
fn list_item(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::Map(f, _) => {
            Some(f)
        }
        _ => None,
    }
}

/// The type of the values of a dictionary or run-end encoded array, because these encodings are not written.
fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) if physical_type(values).is_some() => values,
        DataType::RunEndEncoded(_, values) if physical_type(values.data_type()).is_some() => {
            values.data_type()
        }
        other => other,
    }
}

/// The type that is written for an Arrow type; integers of up to 16 bits become INT32.
fn physical_type(data_type: &DataType) -> Option<Type> {
    Some(match data_type {
        DataType::Boolean => Type::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            Type::Int32
        }
        DataType::Int64 | DataType::UInt32 => Type::Int64,
        DataType::FixedSizeBinary(12) | DataType::Timestamp(TimeUnit::Nanosecond, None) => Type::Int96,
        DataType::Float32 => Type::Float,
        DataType::Float64 => Type::Double,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::ByteArray,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::ByteArray,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
