/** The parser of YAML, as much of it as a skill needs: built apart, since also the thread for long messages loads it later. */
export { CORE_SCHEMA, load } from "js-yaml";
