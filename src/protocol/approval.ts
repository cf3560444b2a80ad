/** Approvals as they are shown and answered. The runtime holds them; whoever answers only points at one. */
import type { Json } from './json.js';

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
