/** Owns: a Pi in memory that remembers what it was told, with the event bus and the tool rules that matter. */
import type { Pi, PiTool } from "../../src/pi/api.ts";

export interface RecordingPi extends Pi {
  /** Names in the order of registration, repeats included. */
  readonly registrations: string[];
  readonly tools: ReadonlyMap<string, PiTool>;
  /** How often the set of active tools was set. */
  readonly activations: string[][];
}

/** `allowed`: what `--tools` lets through; undefined for everything. */
export function createRecordingPi(options: { active?: string[]; allowed?: string[] } = {}): RecordingPi {
  const registrations: string[] = [];
  const tools = new Map<string, PiTool>();
  const activations: string[][] = [];
  const listeners = new Map<string, Set<(data: unknown) => void>>();
  let active = options.active ?? [];
  return {
    registrations,
    tools,
    activations,
    on: () => () => undefined,
    registerTool: (tool) => {
      registrations.push(tool.name);
      tools.set(tool.name, tool);
    },
    registerCommand: () => undefined,
    registerFlag: () => undefined,
    getFlag: () => undefined,
    getMcpServers: () => [],
    registerToolRenderer: () => undefined,
    getAllTools: () => [...tools.values()],
    getActiveTools: () => [...active],
    setActiveTools: (names) => {
      activations.push([...names]);
      active = names.filter((name) => !options.allowed || options.allowed.includes(name));
    },
    getCommands: () => [],
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
