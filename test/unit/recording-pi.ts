/** Owns: a Pi in memory that records what it was told, with Pi's event bus and the tool rules that matter here. */
import type { CommandInfo, McpRegistration, Pi, PiCommand, PiTool } from "../../src/pi/api.ts";

export interface RecordingPi extends Pi {
  /** Names in the order of registration, repeats included. */
  readonly registrations: string[];
  readonly tools: ReadonlyMap<string, PiTool>;
  readonly commands: ReadonlyMap<string, PiCommand>;
  /** Messages that were sent in the user's name. */
  readonly sent: Parameters<Pi["sendUserMessage"]>[];
  /** Entries that were added to the transcript. */
  readonly entries: [customType: string, data: unknown][];
  /** One of Pi's events that carry nothing happens. */
  happens(event: "before_provider_request"): void;
  /** How often the set of active tools was set. */
  readonly activations: string[][];
}

export interface RecordingPiOptions {
  active?: string[];
  /** What `--tools` lets through; undefined for everything. */
  allowed?: string[];
  /** Commands, skills and prompt templates of others. */
  otherCommands?: CommandInfo[];
  /** Value of `--mcp-config`. */
  configFlag?: string;
  /** Servers that other extensions have registered; read at each call of `getMcpServers`. */
  registered?: McpRegistration[];
}

export function createRecordingPi(options: RecordingPiOptions = {}): RecordingPi {
  const registrations: string[] = [];
  const tools = new Map<string, PiTool>();
  const commands = new Map<string, PiCommand>();
  const sent: RecordingPi["sent"] = [];
  const activations: string[][] = [];
  const entries: RecordingPi["entries"] = [];
  const listeners = new Map<string, Set<(data: unknown) => void>>();
  const handlers = new Map<string, Set<() => void>>();
  let active = options.active ?? [];
  return {
    registrations,
    tools,
    activations,
    commands,
    sent,
    sendUserMessage: (...message) => void sent.push(message),
    entries,
    appendEntry: (customType, data) => void entries.push([customType, data]),
    on: (event: string, handler: unknown) => {
      const set = handlers.get(event) ?? new Set();
      handlers.set(event, set.add(handler as () => void));
      return () => void set.delete(handler as () => void);
    },
    happens: (event) => {
      for (const handler of [...(handlers.get(event) ?? [])]) handler();
    },
    registerTool: (tool) => {
      registrations.push(tool.name);
      tools.set(tool.name, tool);
      // As in Pi, a hidden tool is not active.
      if (tool.exposure === "hidden") active = active.filter((name) => name !== tool.name);
    },
    registerCommand: (name, command) => void commands.set(name, command),
    registerFlag: () => undefined,
    getFlag: () => options.configFlag,
    getMcpServers: () => options.registered ?? [],
    registerToolRenderer: () => undefined,
    getAllTools: () => [...tools.values()],
    getActiveTools: () => [...active],
    setActiveTools: (names) => {
      activations.push([...names]);
      const isHidden = (name: string): boolean => tools.get(name)?.exposure === "hidden";
      const isAllowed = (name: string): boolean => !options.allowed || options.allowed.includes(name);
      active = names.filter((name) => isAllowed(name) && !isHidden(name));
    },
    getCommands: () => options.otherCommands ?? [],
    events: {
      emit: (channel, data) => {
        for (const listener of listeners.get(channel) ?? []) listener(data);
      },
      on: (channel, handler) => {
        const set = listeners.get(channel) ?? new Set();
        listeners.set(channel, set.add(handler));
        return () => set.delete(handler);
      },
    },
  };
}
