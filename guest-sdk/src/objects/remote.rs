//! The macro that makes a trait's methods callable from elsewhere.

/// How a reference's methods are called: they wait for the answer. For plain services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {}

/// How a reference's methods are called: they are `async`. For async services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {}

/// How a reference's methods are called: they send, and the answer comes later. For games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested {}

/// Declares a kind of [object](crate::objects): a trait for those who implement it, and a reference for those who call
/// it.
///
/// ```
/// # use wheelhouse_guest::prelude::*;
/// wheelhouse_guest::remote! {
///     /// A door.
///     pub trait Door as DoorRef {
///         /// Opens it for whoever knows the word.
///         fn open(&mut self, word: String) -> Result<(), Refusal>;
///         fn is_open(&self) -> bool;
///     }
/// }
/// ```
///
/// The methods take `&self` or `&mut self`, and arguments and results that serde can carry and that own what they hold.
///
/// The reference is `Copy` and can be a part of any value that is sent. It has:
///
/// | | |
/// | --- | --- |
/// | `DoorRef::export(door)` | exports an object under the next number |
/// | `DoorRef::export_as(7, door)` | exports it under that number, in place of what is there |
/// | `DoorRef::export_shared(None, door)` | exports an `Rc<RefCell<…>>` of which the service keeps a clone |
/// | `door.withdraw()` | takes it back |
/// | `door.is_open()` | calls a method, in a plain service |
/// | `door.awaited().is_open().await` | calls it in an async service |
/// | `door.requested().is_open()` | calls it in a game: gives the session |
/// | `Reference::from(door)`, `DoorRef::from(reference)` | what it is without its type, and back |
#[macro_export]
macro_rules! remote {
    (
        $(#[$attribute:meta])*
        $visibility:vis trait $name:ident as $reference:ident {
            $(
                $(#[$method_attribute:meta])*
                fn $method:ident(&$($receiver:ident)+ $(, $argument:ident: $type:ty)* $(,)?) $(-> $output:ty)?;
            )*
        }
    ) => {
        $(#[$attribute])*
        $visibility trait $name {
            $(
                $(#[$method_attribute])*
                fn $method(&$($receiver)+ $(, $argument: $type)*) $(-> $output)?;
            )*
        }

        #[doc = ::core::concat!("A reference to a [`", ::core::stringify!($name), "`], one's own or another service's.")]
        $visibility struct $reference<M = $crate::objects::Blocking> {
            reference: $crate::Reference,
            mode: ::core::marker::PhantomData<M>,
        }

        $crate::__remote_reference!($reference);

        #[allow(dead_code)]
        impl $reference {
            /// Exports an object of this service.
            $visibility fn export(object: impl $name + 'static) -> Self {
                Self::export_shared(::core::option::Option::None, ::std::rc::Rc::new(::core::cell::RefCell::new(object)))
            }

            /// Exports an object of this service under a number, in place of what is there.
            $visibility fn export_as(number: $crate::ObjectId, object: impl $name + 'static) -> Self {
                let object = ::std::rc::Rc::new(::core::cell::RefCell::new(object));
                Self::export_shared(::core::option::Option::Some(number), object)
            }

            /// Exports an object that the service keeps a hand on as well. While it holds a borrow, calls answer that
            /// the object is busy.
            $visibility fn export_shared(
                number: ::core::option::Option<$crate::ObjectId>,
                object: $crate::objects::SharedObject<impl $name + 'static>,
            ) -> Self {
                $crate::objects::export(number, move |method, arguments| Self::dispatch(&object, method, arguments)).into()
            }

            #[allow(clippy::let_unit_value)]
            fn dispatch(
                object: &::core::cell::RefCell<impl $name>,
                method: &str,
                arguments: &[u8],
            ) -> ::std::vec::Vec<u8> {
                $(
                    if method == ::core::stringify!($method) {
                        let ::core::option::Option::Some(($($argument,)*)) =
                            $crate::objects::arguments::<($($type,)*)>(arguments)
                        else {
                            return $crate::objects::arguments_do_not_fit();
                        };
                        return $crate::__remote_invoke!(object, ($($receiver)+), $method($($argument),*));
                    }
                )*
                $crate::objects::no_such_method()
            }

            /// Takes the object back. False when this service has no such object.
            $visibility fn withdraw(self) -> bool {
                $crate::objects::withdraw(self.reference)
            }

            /// The same reference with methods for an async service.
            $visibility fn awaited(self) -> $reference<$crate::objects::Awaited> {
                $reference { reference: self.reference, mode: ::core::marker::PhantomData }
            }

            /// The same reference with methods for a game.
            $visibility fn requested(self) -> $reference<$crate::objects::Requested> {
                $reference { reference: self.reference, mode: ::core::marker::PhantomData }
            }

            $(
                $(#[$method_attribute])*
                $visibility fn $method(&self $(, $argument: $type)*)
                    -> ::core::result::Result<$crate::__remote_output!($($output)?), $crate::ObjectError>
                {
                    $crate::objects::call(self.reference, ::core::stringify!($method), &($($argument,)*))
                }
            )*
        }

        #[allow(dead_code)]
        impl $reference<$crate::objects::Awaited> {
            $(
                $(#[$method_attribute])*
                $visibility async fn $method(&self $(, $argument: $type)*)
                    -> ::core::result::Result<$crate::__remote_output!($($output)?), $crate::ObjectError>
                {
                    $crate::objects::call_awaited(self.reference, ::core::stringify!($method), &($($argument,)*)).await
                }
            )*
        }

        #[allow(dead_code)]
        impl $reference<$crate::objects::Requested> {
            $(
                $(#[$method_attribute])*
                $visibility fn $method(&self $(, $argument: $type)*)
                    -> ::core::result::Result<$crate::Session, $crate::ObjectError>
                {
                    $crate::objects::call_requested(self.reference, ::core::stringify!($method), &($($argument,)*))
                }
            )*
        }
    };
}

/// What every reference can do, whatever its methods are. By hand, since derives would ask the same of the mode, and
/// serde's for a path to serde.
#[doc(hidden)]
#[macro_export]
macro_rules! __remote_reference {
    ($reference:ident) => {
        impl<M> ::core::clone::Clone for $reference<M> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<M> ::core::marker::Copy for $reference<M> {}

        impl<M> ::core::cmp::PartialEq for $reference<M> {
            fn eq(&self, other: &Self) -> bool {
                self.reference == other.reference
            }
        }

        impl<M> ::core::cmp::Eq for $reference<M> {}

        impl<M> ::core::fmt::Debug for $reference<M> {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let $crate::Reference { service, object } = self.reference;
                ::core::write!(formatter, "{}({service}/{object})", ::core::stringify!($reference))
            }
        }

        impl<M> ::core::convert::From<$reference<M>> for $crate::Reference {
            fn from(reference: $reference<M>) -> Self {
                reference.reference
            }
        }

        impl ::core::convert::From<$crate::Reference> for $reference {
            fn from(reference: $crate::Reference) -> Self {
                Self { reference, mode: ::core::marker::PhantomData }
            }
        }

        impl $crate::serde::Serialize for $reference {
            fn serialize<S: $crate::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::serde::Serialize::serialize(&self.reference, serializer)
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $reference {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                <$crate::Reference as $crate::serde::Deserialize>::deserialize(deserializer)
                    .map(::core::convert::From::from)
            }
        }
    };
}

/// Calls a method of an object, unless the object is busy.
#[doc(hidden)]
#[macro_export]
macro_rules! __remote_invoke {
    ($object:ident, (self), $($call:tt)+) => {
        match $object.try_borrow() {
            ::core::result::Result::Ok(object) => $crate::objects::result(object.$($call)+),
            ::core::result::Result::Err(_) => $crate::objects::busy(),
        }
    };
    ($object:ident, (mut self), $($call:tt)+) => {
        match $object.try_borrow_mut() {
            ::core::result::Result::Ok(mut object) => $crate::objects::result(object.$($call)+),
            ::core::result::Result::Err(_) => $crate::objects::busy(),
        }
    };
}

/// The type that a method returns; none written is `()`.
#[doc(hidden)]
#[macro_export]
macro_rules! __remote_output {
    () => {
        ()
    };
    ($output:ty) => {
        $output
    };
}
