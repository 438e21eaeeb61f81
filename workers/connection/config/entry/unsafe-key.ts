/** The key that, written to a plain object, changes the object's prototype instead of naming a property. */
export const UNSAFE_KEY = "__proto__";
