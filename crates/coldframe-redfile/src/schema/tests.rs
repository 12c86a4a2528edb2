//! The document of the Dremel paper in both forms of children; invalid trees; lists converted from Arrow and
//! back.

use super::*;

fn element(name: &str, physical: Option<Type>, repetition: Repetition, children: Children) -> SchemaElement {
    SchemaElement {
        physical_type: physical,
        repetition: Some(repetition),
        name: name.to_owned(),
        children,
        converted_type: None,
    }
}

use Repetition::{Optional, Repeated, Required};

/// The Document of the Dremel paper; `children` makes the form in which elements list their children.
fn document(children: impl Fn(&[i32]) -> Children) -> Vec<SchemaElement> {
    vec![
        element("Document", None, Required, children(&[1, 2, 5])),
        element("DocId", Some(Type::Int64), Required, Children::None),
        element("Links", None, Optional, children(&[3, 4])),
        element("Backward", Some(Type::Int64), Repeated, Children::None),
        element("Forward", Some(Type::Int64), Repeated, Children::None),
        element("Name", None, Repeated, children(&[6, 9])),
        element("Language", None, Repeated, children(&[7, 8])),
        element("Code", Some(Type::ByteArray), Required, Children::None),
        element("Country", Some(Type::ByteArray), Optional, Children::None),
        element("Url", Some(Type::ByteArray), Optional, Children::None),
    ]
}

fn parse(elements: &[SchemaElement]) -> Result<Schema> {
    Schema::from_elements(elements, TypeOptions::default(), &Limits::default(), 0)
}

#[test]
fn both_forms_of_children_give_the_levels_of_the_paper() {
    let counted = parse(&document(|c| Children::Count(count(c.len())))).unwrap();
    let listed = parse(&document(|c| Children::Indices(c.to_vec()))).unwrap();
    assert_eq!(counted.fields, listed.fields);
    let levels: Vec<_> =
        counted.leaves.iter().map(|l| (l.name(), l.max_repetition, l.max_definition)).collect();
    let expected = [
        ("DocId", 0, 0),
        ("Links.Backward", 1, 2),
        ("Links.Forward", 1, 2),
        ("Name.Language.Code", 2, 2),
        ("Name.Language.Country", 2, 3),
        ("Name.Url", 1, 2),
    ];
    assert_eq!(levels, expected.map(|(n, r, d)| (n.to_owned(), r, d)));
    let name = counted.arrow.field(2);
    assert!(!name.is_nullable());
    let DataType::List(item) = name.data_type() else { panic!("{name}") };
    assert!(!item.is_nullable() && item.name() == ELEMENT);
    assert_eq!(counted.elements().len(), 10);
    assert_eq!(parse(&counted.elements()).unwrap().fields, counted.fields);
}

#[test]
fn children_may_be_anywhere_but_have_one_parent() {
    let mut breadth_first = document(|c| Children::Indices(c.to_vec()));
    breadth_first.swap(3, 9);
    breadth_first[2].children = Children::Indices(vec![9, 4]);
    breadth_first[5].children = Children::Indices(vec![6, 3]);
    assert_eq!(
        parse(&breadth_first).unwrap().arrow,
        parse(&document(|c| Children::Indices(c.to_vec()))).unwrap().arrow
    );
    for places in [vec![0], vec![1, 1], vec![-1], vec![99], vec![1]] {
        let mut cyclic = document(|c| Children::Indices(c.to_vec()));
        cyclic[0].children = Children::Indices(places);
        assert!(parse(&cyclic).is_err());
    }
    let mut too_many = document(|c| Children::Count(count(c.len())));
    too_many[0].children = Children::Count(i32::MAX);
    let e = parse(&too_many).unwrap_err();
    assert_eq!(e.to_string(), "element `Document`: expected 0 to 9 children, found 2147483647");
}

#[test]
fn depth_is_bounded_and_links_to_parents_are_refused() {
    let mut deep: Vec<_> =
        (0..200).map(|i| element(&format!("g{i}"), None, Optional, Children::Count(1))).collect();
    deep.push(element("x", Some(Type::Int32), Optional, Children::None));
    assert!(parse(&deep).unwrap_err().to_string().contains("max_depth"));
    let mut parents = document(|c| Children::Count(count(c.len())));
    parents[0].children = Children::None;
    assert!(matches!(parse(&parents).unwrap_err().kind(), coldframe_core::ErrorKind::Unsupported(_)));
}

#[test]
fn arrow_lists_are_converted_and_back() {
    let list = |item: Field| DataType::List(Arc::new(item.with_name(ELEMENT)));
    let nullable = Field::new("x", DataType::Utf8, true);
    let plain = Field::new("x", DataType::Int32, false);
    let columns = vec![
        Field::new("bare", list(plain.clone()), false),
        Field::new("nullable", list(plain.clone()), true),
        Field::new("holes", list(nullable.clone()), false),
        Field::new("lists", list(Field::new("x", list(nullable), true)), true),
        Field::new("bare_lists", list(Field::new("x", list(plain.clone()), false)), false),
        Field::new("s", DataType::Struct(vec![plain].into()), true),
    ];
    let arrow = arrow_schema::Schema::new(columns);
    let schema = Schema::from_arrow("m", &arrow, &Limits::default()).unwrap();
    assert_eq!(*schema.arrow, arrow);
    let again = parse(&schema.elements()).unwrap();
    assert_eq!(*again.arrow, arrow);
    assert_eq!(again.leaves, schema.leaves);
    assert_eq!(again.fields, schema.fields);
}

#[test]
fn a_part_of_a_column_has_only_its_leaves() {
    let schema = parse(&document(|c| Children::Count(count(c.len())))).unwrap();
    let url = Field::new("Url", DataType::Binary, true);
    let item = Field::new(ELEMENT, DataType::Struct(vec![url].into()), false);
    let wanted = Field::new("Name", DataType::List(Arc::new(item)), false);
    let pruned = schema.fields[2].prune(&wanted).unwrap();
    let mut places = Vec::new();
    pruned.leaf_places(&mut places);
    assert_eq!((places, pruned.field()), (vec![5], wanted));
}
