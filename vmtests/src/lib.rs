//! VM scenarios of Provisor.
