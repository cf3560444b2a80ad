/**
 * Approvals as data: the request (`Approval`), the target it is bound to, the answer and the standing grant. The
 * runtime keeps the requests; an answer refers to one by id.
 */
import type { Json } from './json.js';
import type { BackendRef } from './loop.js';

/**
 * The file or directory that a call acts on, resolved when the approval is requested. The approval is valid for this
 * target only.
 */
export interface ApprovalTarget {
  /** The role of `path`: the entry file of a program to run, a file to write, or the working directory of a command. */
  readonly kind: 'program' | 'file' | 'directory';
  /** The real path, with symbolic links resolved. */
  readonly path: string;
  /** For a program: SHA-256 of the bytes of its entry file, in hex. */
  readonly sha256?: string;
  /**
   * For a command: how it is confined, as text for people, such as `in a sandbox without network`. Compared literally.
   */
  readonly confinement?: string;
  /** True for a file that did not exist. The call may create it, but must not replace a file that was created since. */
  readonly isNew?: boolean;
  /**
   * True if the requested path is not the canonical one: it leads through a symbolic link, or contains a `..`, a `.` or
   * an empty segment. A standing grant covers such a path only if it leads to the very target that was approved,
   * because the schema of the grant sees the path as it is written.
   */
  readonly isIndirect?: boolean;
}

/** A tool call that waits for a person's approval. */
export interface Approval {
  /** Derived from everything that the approval is bound to. If any of it changes, the call needs another approval. */
  readonly id: string;
  readonly sessionId: string;
  /** The turn that the call belongs to: the key of its root call. */
  readonly turnId: string;
  /** The key of the tool's call, such as `t1/2/0`. */
  readonly callId: string;
  /** The loop id of the tool. */
  readonly tool: string;
  /** The arguments with which the call runs: those after the filters of its policy. */
  readonly arguments: Json;
  /** SHA-256 of the canonical JSON of `arguments`, in base64url. */
  readonly argumentsDigest: string;
  /** The digest of the definition that the call would run. */
  readonly definitionDigest: string;
  /** The build of the host that requested the approval. Absent if it has none. */
  readonly build?: string;
  /** The target of the call. Absent for a tool that resolves none. */
  readonly target?: ApprovalTarget;
  /** The models that get the same request if the first one fails. Absent for a call without fallback. */
  readonly fallback?: readonly BackendRef[];
  /** The principal on whose behalf the turn runs. Absent if the turn names none. */
  readonly principal?: string;
  /**
   * The only names that may answer.
   * @default anyone except the agent itself
   */
  readonly approvers?: readonly string[];
  /** The id of the grant of the turn. Absent if the turn has none. */
  readonly grant?: string;
  /** The question for the person, escaped and bounded in length. */
  readonly description: string;
  /** When the approval was requested: ISO 8601, UTC. */
  readonly requestedAt: string;
  /** When the approval expires: ISO 8601, UTC. */
  readonly expiresAt: string;
  /** Loop ids from the root of the turn to the tool. */
  readonly path: readonly string[];
}

/**
 * The answer to an approval. If `sessionId`, `callId`, `tool` or `argumentsDigest` is present and differs from that of
 * the pending approval, the answer is refused.
 */
export interface ApprovalAnswer {
  /** The id of the approval. */
  readonly id: string;
  /** True to approve the call, false to deny it. */
  readonly approved: boolean;
  /** The name of the person who answers. */
  readonly by: string;
  /** Shown to the model if the call is denied. */
  readonly reason?: string;
  readonly sessionId?: string;
  readonly callId?: string;
  readonly tool?: string;
  readonly argumentsDigest?: string;
  /**
   * A JSON Schema. It gives a standing grant: further calls of the same tool in this session whose arguments are valid
   * under it are approved. Not allowed in a denial.
   */
  readonly standing?: Json;
}

/** The answer to an approval as it is journaled. */
export interface RecordedAnswer {
  readonly approved: boolean;
  readonly by: string;
  readonly reason?: string;
  /** When the answer was recorded, in milliseconds since the epoch. */
  readonly at: number;
}

/** The state of an approval. It is pending unless `answer` is present or `isAbandoned` is true. */
export interface ApprovalState {
  /** Absent once the turn has ended. */
  readonly approval?: Approval;
  /** Absent until the approval is answered. */
  readonly answer?: RecordedAnswer;
  /**
   * True if the call stopped waiting without an answer: its turn was cancelled, it ended, or its branch lost a race. An
   * expired approval is not abandoned: it is answered with a denial by `rondo`.
   */
  readonly isAbandoned: boolean;
}

/** A person's authorization for further calls of one tool in one session whose arguments are valid under a schema. */
export interface StandingGrant {
  /** The loop id of the tool. */
  readonly tool: string;
  /** The digest of the definition that the grant applies to. */
  readonly definitionDigest: string;
  /** The build of the host that requested the approval whose answer gave the grant. */
  readonly build?: string | undefined;
  /** A JSON Schema document for the arguments. */
  readonly schema: Json;
  /**
   * The arguments whose value or range the schema limits, each as the JSON text of its path, such as
   * `["order","amount"]`. Absent in grants of earlier versions.
   */
  readonly limitedPaths?: readonly string[] | undefined;
  /**
   * The target of the approved call. For a program, the grant covers only this target. For a file or a directory, it
   * also covers other targets of the same kind and confinement that are not `isIndirect`.
   */
  readonly target?: ApprovalTarget | undefined;
  /** The name of the person who gave the grant. */
  readonly by: string;
  /** The principal of the turn in which the grant was given. */
  readonly principal?: string | undefined;
  /** The id of the grant of that turn. */
  readonly grant?: string | undefined;
  /** The id of the approval whose answer gave the grant. */
  readonly approvalId: string;
  /** When the grant was given, in milliseconds since the epoch. */
  readonly givenAt: number;
}
