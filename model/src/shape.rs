//! The outer shape of what a policy is called with (RF FR-004a).
//!
//! Only the layers around the requests are looked at, and that the requests themselves are attribute sets. A request
//! was checked once, when it was read, and is moved through untouched.
//!
//! A shape is derived from the Rust type that a policy takes: `Vec<Leaf<R>>` is a list of requests,
//! `BTreeMap<String, Leaf<R>>` requests by name, and layers nest.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

/// The layers around requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One attribute set: a request.
    Attrs,
    /// A list, each item of the inner shape.
    ListOf(&'static Shape),
    /// An attribute set, each value of the inner shape.
    AttrsOf(&'static Shape),
}

/// What a caller hands over: any tree, with requests as leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument<L> {
    /// An attribute set that nobody looks into here.
    Leaf(L),
    /// A list.
    List(Vec<Argument<L>>),
    /// An attribute set whose values are looked at.
    Attrs(BTreeMap<String, Argument<L>>),
    /// Anything else.
    Scalar(Scalar),
}

/// A value that is neither a list nor an attribute set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `null`
    Null,
    /// A boolean.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
}

/// An argument of another shape than the option takes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{option}` takes {shape} (`{shape:#}`), and {} is {found}; pass {shape}", .at.describe())]
pub struct ShapeError {
    /// The option that was called, such as `resources.ssl.policy.apply`.
    pub option: String,
    /// The type it takes.
    pub shape: Shape,
    /// Which part of the argument is wrong.
    pub at: Path,
    /// What is there instead.
    pub found: &'static str,
}

/// A part of an argument, from the outside in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Step>);

/// One step into an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To an item of a list, counted from 0.
    Item(usize),
    /// To a value of an attribute set.
    Key(String),
}

/// A request: the innermost layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf<L>(pub L);

/// A type that is made of layers around leaves.
pub trait Layers<L>: Sized {
    /// Its layers, as data.
    const SHAPE: Shape;

    /// Takes the argument apart. `at` is where in the whole argument it stands.
    fn take_at(argument: Argument<L>, at: &mut Path) -> Result<Self, &'static str>;

    /// Checks the argument of `option` and gives it as a type.
    fn take(option: &str, argument: Argument<L>) -> Result<Self, ShapeError> {
        let mut at = Path::default();
        Self::take_at(argument, &mut at).map_err(|found| ShapeError {
            option: option.to_owned(),
            shape: Self::SHAPE,
            at,
            found,
        })
    }
}

impl<L> Layers<L> for Leaf<L> {
    const SHAPE: Shape = Shape::Attrs;

    fn take_at(argument: Argument<L>, _: &mut Path) -> Result<Leaf<L>, &'static str> {
        match argument {
            Argument::Leaf(leaf) => Ok(Leaf(leaf)),
            Argument::Attrs(_) => Err("one more layer of attribute sets"),
            other => Err(other.kind()),
        }
    }
}

impl<L, T: Layers<L>> Layers<L> for Vec<T> {
    const SHAPE: Shape = Shape::ListOf(&T::SHAPE);

    fn take_at(argument: Argument<L>, at: &mut Path) -> Result<Vec<T>, &'static str> {
        let Argument::List(items) = argument else {
            return Err(argument.kind());
        };
        let take = |(index, item)| {
            at.0.push(Step::Item(index));
            let taken = T::take_at(item, at)?;
            at.0.pop();
            Ok(taken)
        };
        items.into_iter().enumerate().map(take).collect()
    }
}

impl<L, T: Layers<L>> Layers<L> for BTreeMap<String, T> {
    const SHAPE: Shape = Shape::AttrsOf(&T::SHAPE);

    fn take_at(argument: Argument<L>, at: &mut Path) -> Result<BTreeMap<String, T>, &'static str> {
        let Argument::Attrs(values) = argument else {
            return Err(argument.kind());
        };
        let take = |(key, value): (String, Argument<L>)| {
            at.0.push(Step::Key(key.clone()));
            let taken = T::take_at(value, at)?;
            at.0.pop();
            Ok((key, taken))
        };
        values.into_iter().map(take).collect()
    }
}

impl<L> Argument<L> {
    /// An attribute set of these values.
    pub fn attrs<K: Into<String>>(values: impl IntoIterator<Item = (K, Argument<L>)>) -> Argument<L> {
        Argument::Attrs(
            values
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }

    fn kind(&self) -> &'static str {
        match self {
            Argument::Leaf(_) => "a single request",
            Argument::List(_) => "a list",
            Argument::Attrs(_) => "an attribute set",
            Argument::Scalar(Scalar::Null) => "null",
            Argument::Scalar(Scalar::Boolean) => "a boolean",
            Argument::Scalar(Scalar::Number) => "a number",
            Argument::Scalar(Scalar::String) => "a string",
        }
    }
}

impl Path {
    fn describe(&self) -> String {
        if self.0.is_empty() {
            return "its argument".to_owned();
        }
        let steps = self.0.iter().map(|step| match step {
            Step::Item(index) => format!("[{index}]"),
            Step::Key(key) => format!(".{key:?}"),
        });
        format!("its argument's `{}`", steps.collect::<String>())
    }
}

impl fmt::Display for Shape {
    /// In words; with `#` as the type that a Nix module would declare.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if formatter.alternate() {
            return match self {
                Shape::Attrs => formatter.write_str("attrs"),
                Shape::ListOf(Shape::Attrs) => formatter.write_str("listOf attrs"),
                Shape::AttrsOf(Shape::Attrs) => formatter.write_str("attrsOf attrs"),
                Shape::ListOf(inner) => write!(formatter, "listOf ({inner:#})"),
                Shape::AttrsOf(inner) => write!(formatter, "attrsOf ({inner:#})"),
            };
        }
        let (mut shape, mut depth) = (self, 0);
        loop {
            let (one, many) = match shape {
                Shape::Attrs | Shape::AttrsOf(_) => ("an attribute set", "attribute sets"),
                Shape::ListOf(_) => ("a list", "lists"),
            };
            formatter.write_str(if depth == 0 { one } else { many })?;
            shape = match shape {
                Shape::Attrs => return Ok(()),
                Shape::ListOf(inner) | Shape::AttrsOf(inner) => inner,
            };
            formatter.write_str(" of ")?;
            depth += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Requests = Vec<Leaf<u8>>;
    type ByApp = BTreeMap<String, Leaf<u8>>;
    type ByAppThenName = BTreeMap<String, BTreeMap<String, Leaf<u8>>>;

    fn refusal<T: Layers<u8> + std::fmt::Debug>(argument: Argument<u8>) -> String {
        T::take("resources.ssl.policy.apply", argument)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_shape_is_read_off_the_type() {
        assert_eq!(<Leaf<u8> as Layers<u8>>::SHAPE, Shape::Attrs);
        assert_eq!(<Requests as Layers<u8>>::SHAPE, Shape::ListOf(&Shape::Attrs));
        assert_eq!(
            <ByAppThenName as Layers<u8>>::SHAPE,
            Shape::AttrsOf(&Shape::AttrsOf(&Shape::Attrs))
        );
    }

    #[test]
    fn a_shape_reads_in_words_and_as_a_nix_type() {
        for (shape, words, nix) in [
            (Shape::Attrs, "an attribute set", "attrs"),
            (
                <Requests as Layers<u8>>::SHAPE,
                "a list of attribute sets",
                "listOf attrs",
            ),
            (
                <ByApp as Layers<u8>>::SHAPE,
                "an attribute set of attribute sets",
                "attrsOf attrs",
            ),
            (
                <ByAppThenName as Layers<u8>>::SHAPE,
                "an attribute set of attribute sets of attribute sets",
                "attrsOf (attrsOf attrs)",
            ),
            (
                Shape::ListOf(&Shape::ListOf(&Shape::Attrs)),
                "a list of lists of attribute sets",
                "listOf (listOf attrs)",
            ),
        ] {
            assert_eq!(shape.to_string(), words);
            assert_eq!(format!("{shape:#}"), nix);
        }
    }

    #[test]
    fn a_fitting_argument_is_taken_apart_and_its_leaves_are_moved_through() {
        let list = Argument::List(vec![Argument::Leaf(1), Argument::Leaf(2)]);
        assert_eq!(Requests::take("o", list), Ok(vec![Leaf(1), Leaf(2)]));
        assert_eq!(Requests::take("o", Argument::List(vec![])), Ok(vec![]));

        let inner = Argument::attrs([("x", Argument::Leaf(1)), ("y", Argument::Leaf(2))]);
        let taken = ByAppThenName::take("o", Argument::attrs([("app", inner)])).unwrap();
        assert_eq!(taken["app"]["y"], Leaf(2));
    }

    #[test]
    fn given_a_scalar_the_error_names_option_and_type() {
        for (scalar, found) in [
            (Scalar::Null, "null"),
            (Scalar::Boolean, "a boolean"),
            (Scalar::Number, "a number"),
            (Scalar::String, "a string"),
        ] {
            assert_eq!(
                refusal::<Requests>(Argument::Scalar(scalar)),
                format!(
                    "`resources.ssl.policy.apply` takes a list of attribute sets (`listOf attrs`), and its argument \
                     is {found}; pass a list of attribute sets"
                )
            );
        }
    }

    #[test]
    fn every_layer_is_checked_and_the_error_says_where() {
        let scalar = || Argument::Scalar(Scalar::Number);
        let list = || Argument::List(vec![Argument::Leaf(1)]);
        let tables = [
            (
                refusal::<Requests>(Argument::attrs([("a", Argument::Leaf(1))])),
                "its argument is an attribute set",
            ),
            (
                refusal::<Requests>(Argument::Leaf(1)),
                "its argument is a single request",
            ),
            (
                refusal::<Requests>(Argument::List(vec![Argument::Leaf(1), scalar()])),
                "`[1]` is a number",
            ),
            (
                refusal::<Requests>(Argument::List(vec![list()])),
                "`[0]` is a list",
            ),
            (refusal::<ByApp>(list()), "its argument is a list"),
            (
                refusal::<ByApp>(Argument::attrs([("a", Argument::Leaf(1)), ("b", scalar())])),
                "`.\"b\"` is a number",
            ),
            (
                refusal::<ByAppThenName>(Argument::attrs([("a", list())])),
                "`.\"a\"` is a list",
            ),
            (
                refusal::<ByAppThenName>(Argument::attrs([("a", Argument::attrs([("x", scalar())]))])),
                "`.\"a\".\"x\"` is a number",
            ),
            (
                refusal::<ByApp>(Argument::attrs([(
                    "a",
                    Argument::attrs([("x", Argument::Leaf(1))]),
                )])),
                "`.\"a\"` is one more layer of attribute sets",
            ),
        ];
        for (message, part) in tables {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn leaves_are_not_looked_into_so_any_type_can_be_one() {
        struct Opaque;
        let taken = Vec::<Leaf<Opaque>>::take("o", Argument::List(vec![Argument::Leaf(Opaque)]));
        assert!(taken.is_ok());
    }
}
