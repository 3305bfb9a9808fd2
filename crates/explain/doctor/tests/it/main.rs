//! What the doctor finds in dumps and descriptions.
