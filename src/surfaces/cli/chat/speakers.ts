/**
 * Tracks the agents of a session by generation (one call of an agent), with their names and their depth below the root
 * agent.
 */
import type { EventEnvelope } from '../../../protocol/events.js';

/** An agent in a session. */
export interface Speaker {
  readonly name: string;
  readonly depth: number;
  /** The id of the tool call with which its parent started it. */
  readonly toolCallId: string | undefined;
}

interface ToolUse {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** The tool calls of a reply in order, by envelope id. */
interface ReplyToolUses {
  /** The sequence number of the journal entry with the reply. */
  readonly seq: string;
  readonly uses: Map<string, ToolUse>;
}

const ROOT: Speaker = { name: '', depth: 0, toolCallId: undefined };

/** The agents of a session. */
export class Speakers {
  private readonly byGeneration = new Map<string, Speaker>();
  private readonly replies = new Map<string, ReplyToolUses>();

  /** Adds the information of an envelope about tool calls and the agents that they start. */
  addEnvelope(envelope: EventEnvelope): void {
    const { type, generationId, content } = envelope;
    if (type === 'tool-call') this.addToolUse(envelope.id, generationId, content);
    else if (type === 'loop-triggered' && content.parentGenerationId !== undefined)
      this.addSpeaker(generationId, content.parentGenerationId);
    else if (type === 'child-generation') this.replies.delete(content.childGenerationId);
  }

  /**
   * Returns the agent of a generation. An unknown generation is an agent without a name below its nearest known
   * ancestor; a turn is the root agent.
   */
  speakerOf(generationId: string): Speaker {
    const speaker = this.byGeneration.get(generationId);
    if (speaker !== undefined) return speaker;
    let ancestor = generationId;
    while (ancestor.includes('/') && !this.byGeneration.has(ancestor))
      ancestor = ancestor.slice(0, ancestor.lastIndexOf('/'));
    return ancestor === generationId ? ROOT : { ...ROOT, depth: (this.byGeneration.get(ancestor)?.depth ?? 0) + 1 };
  }

  private addToolUse(id: string, generationId: string, use: ToolUse): void {
    // A tool call deeper in the tree has its call key as id. It is not part of this reply.
    if (use.toolCallId.startsWith(`${generationId}/`)) return;
    const [seq = ''] = id.split('.', 1);
    const current = this.replies.get(generationId);
    const reply = current?.seq === seq ? current : { seq, uses: new Map<string, ToolUse>() };
    this.replies.set(generationId, reply);
    reply.uses.set(id, use);
  }

  /**
   * Adds a child agent. Its key begins with the key of its parent. If the parent's reply has several calls, the group
   * and the index of the call follow.
   */
  private addSpeaker(generationId: string, parent: string): void {
    const [, index] = generationId.slice(parent.length + 1).split('/');
    const uses = [...(this.replies.get(parent)?.uses.values() ?? [])];
    const use = uses.length === 1 ? uses[0] : uses[Number(index)];
    const depth = this.speakerOf(parent).depth + 1;
    this.byGeneration.set(generationId, { name: use?.toolName ?? '', depth, toolCallId: use?.toolCallId });
  }
}
