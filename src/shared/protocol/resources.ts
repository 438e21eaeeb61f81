/** What the two threads say to each other about a server's resources (MCP 2025-11-25, server/resources). Types only. */

/** Parameters of `readResource`. Its answer is a msgpackr-encoded `CallResult`. */
export interface ReadResourceParams {
  server: string;
  uri: string;
  /** True for a program that reads what the server sent, as `CallToolParams.wantsStructured`. */
  wantsStructured?: boolean;
}

/** A resource, or a template of resources, as a list shows it. Every text is one cleaned line. */
export interface ShownResource {
  /** The URI as the server gave it, or the template. */
  uri: string;
  title: string;
}

/** The resources of one server; `resources` is undefined until they are known. */
export interface ServerResources {
  server: string;
  resources: ShownResource[] | undefined;
  templates: ShownResource[];
}

/** What can take the place of a mention that is being typed: `mention` is `<server>:<uri>`. */
export interface SuggestedResource {
  mention: string;
  title: string;
}
