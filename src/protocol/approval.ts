/** Approvals as they are shown and answered. The runtime holds them; whoever answers only points at one. */
import type { Json } from './json.js';

/** What a call acts on, resolved when its approval was requested. An approval is valid for this target only. */
export interface ApprovalTarget {
  /** What `path` names: the entry file of a program to run, a file to write, or the directory of a command. */
  readonly kind: 'program' | 'file' | 'directory';
  /** The real path, symbolic links resolved. */
  readonly path: string;
  /** SHA-256 of the bytes of a program's entry file, in hex. */
  readonly sha256?: string;
  /** How a command is confined. */
  readonly confinement?: string;
  /** True for a file that did not exist: it may be created, and nothing may be replaced. */
  readonly isNew?: boolean;
  /**
   * True if the path, as it was given, is not the plain path from a root: it leads through a symbolic link, or has a part `..`,
   * `.` or an empty one. A standing grant for other paths does not cover it. Journaled under this name.
   */
  readonly isLinked?: boolean;
}

/** A call of a tool that waits for a person. */
export interface Approval {
  /** Commits to everything that the approval is bound to: with any of it changed there is no such id. */
  readonly id: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly callId: string;
  readonly tool: string;
  readonly arguments: Json;
  readonly argumentsDigest: string;
  /** Of the definition that would run. */
  readonly definitionDigest: string;
  /** What the call acts on; absent for a tool that resolves nothing. */
  readonly target?: ApprovalTarget;
  /** On whose behalf; absent when the turn names nobody. */
  readonly principal?: string;
  /** Who alone may answer; anybody but the agent itself unless told. */
  readonly approvers?: readonly string[];
  /** What the person is asked, escaped and bounded. */
  readonly description: string;
  readonly requestedAt: string;
  readonly expiresAt: string;
  /** Loop ids from the root to the tool. */
  readonly path: readonly string[];
}

/** An answer. What it says beside the id must be what the runtime holds; anything else refuses it. */
export interface ApprovalAnswer {
  readonly id: string;
  readonly approved: boolean;
  /** Who answers. */
  readonly by: string;
  readonly reason?: string;
  readonly sessionId?: string;
  readonly callId?: string;
  readonly tool?: string;
  readonly argumentsDigest?: string;
  /** Approves, in this session, further calls of the same tool whose arguments fit this JSON Schema. */
  readonly standing?: Json;
}

/** How an approval was answered; `at` is the clock's milliseconds. */
export interface RecordedAnswer {
  readonly approved: boolean;
  readonly by: string;
  readonly reason?: string;
  readonly at: number;
}

/** What is known of an approval: it waits unless it was answered or is over. */
export interface ApprovalState {
  /** Absent once its turn has ended. */
  readonly approval?: Approval;
  readonly answer?: RecordedAnswer;
  /** Nobody waits for an answer any more, and none was given. */
  readonly isAbandoned: boolean;
}

/** A person's word that calls of one tool need no further answer, where their arguments fit a schema. */
export interface StandingGrant {
  readonly tool: string;
  /** The digest of the definition that it holds for. */
  readonly definitionDigest: string;
  /** A JSON Schema document for the arguments. */
  readonly schema: Json;
  /** The arguments that the schema limits, as JSON arrays of member names; absent in grants of earlier versions. */
  readonly limits?: readonly string[] | undefined;
  /** What the call acted on that it was given with. */
  readonly target?: ApprovalTarget | undefined;
  readonly by: string;
  /** On whose behalf the turn ran that it was given in. */
  readonly principal?: string | undefined;
  /** The approval that it was given with. */
  readonly approvalId: string;
  readonly givenAt: number;
}
