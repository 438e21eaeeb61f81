/** Types for the part of cross-spawn that escapes a command line for the command shell of Windows: it has none. */
declare module "cross-spawn/lib/util/escape.js" {
  const escaping: {
    command(command: string): string;
    argument(argument: string, doubleEscapeMetaCharacters: boolean): string;
  };
  export default escaping;
}
