/** Who speaks in a session: each agent at work, by its generation, with its name and how deep it stands below the root. */
import type { EventEnvelope } from '../../../protocol/events.js';

export interface Speaker {
  readonly name: string;
  readonly depth: number;
  /** The call of the tool that it was begun by, as its parent made it. */
  readonly toolCallId: string | undefined;
}

interface ToolUse {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** The tools that a reply asked for, in its order, by their envelopes. */
interface ReplyToolUses {
  readonly seq: string;
  readonly uses: Map<string, ToolUse>;
}

const ROOT: Speaker = { name: '', depth: 0, toolCallId: undefined };

export class Speakers {
  private readonly byGeneration = new Map<string, Speaker>();
  private readonly replies = new Map<string, ReplyToolUses>();

  addEnvelope(envelope: EventEnvelope): void {
    const { type, generationId, content } = envelope;
    if (type === 'tool-call') this.addToolUse(envelope.id, generationId, content);
    else if (type === 'loop-triggered') this.addSpeaker(generationId, content.parentGenerationId ?? '');
    else if (type === 'child-generation') this.replies.delete(content.childGenerationId);
  }

  /** An unknown speaker is shown below its nearest known ancestor. */
  speakerOf(generationId: string): Speaker {
    const known = this.byGeneration.get(generationId);
    if (known !== undefined) return known;
    let above = generationId;
    while (above.includes('/') && !this.byGeneration.has(above)) above = above.slice(0, above.lastIndexOf('/'));
    return above === generationId ? ROOT : { ...ROOT, depth: (this.byGeneration.get(above)?.depth ?? 0) + 1 };
  }

  private addToolUse(id: string, generationId: string, use: ToolUse): void {
    // An action deeper down that is asked about is no part of the reply: it goes by the key of its call.
    if (use.toolCallId.startsWith(`${generationId}/`)) return;
    const [seq = ''] = id.split('.', 1);
    const known = this.replies.get(generationId);
    const reply = known?.seq === seq ? known : { seq, uses: new Map<string, ToolUse>() };
    this.replies.set(generationId, reply);
    reply.uses.set(id, use);
  }

  /**
   * A child's key begins with its parent's. If the parent's reply made several calls, then come their group and the
   * place of this one among them.
   */
  private addSpeaker(generationId: string, parent: string): void {
    const [, place] = generationId.slice(parent.length + 1).split('/');
    const uses = [...(this.replies.get(parent)?.uses.values() ?? [])];
    const use = uses.length === 1 ? uses[0] : uses[Number(place)];
    const depth = this.speakerOf(parent).depth + 1;
    this.byGeneration.set(generationId, { name: use?.toolName ?? '', depth, toolCallId: use?.toolCallId });
  }
}
