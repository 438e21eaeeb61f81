/** What the session, the tools and run.ts know of the servers' instructions. Types only. */

/** Answers the entries of the transcript from its root to the current leaf. */
export type ReadBranch = () => readonly unknown[];

/** `text` goes to the model. `servers` goes to the details of the result, by which a resumed session knows the text. */
export interface ToldInstructions {
  text: string;
  servers: string[];
}

export interface Instructions {
  /** The words of those servers whose words the branch does not hold; undefined if there are none. */
  tell(servers: readonly string[], branch: ReadBranch): Promise<ToldInstructions | undefined>;
  /** The next answer reads from the transcript which words the branch holds. */
  branchChanged(): void;
}

/** The servers whose words the branch holds; undefined until its transcript is read. */
export interface InstructionsState {
  told: Set<string> | undefined;
}
