/**
 * The backend `scripted`: the answers stand in a file, one for each call. A turn begins at the step after the answers
 * that its journal has, then counts in this process. Failures are not answers: a turn that goes on in a new process
 * meets the steps again that have failed it in the old one.
 */
import { LoopError } from '../../base/errors.js';
import type { ModelProvider } from '../../loops/model.js';
import type { ModelCallOptions } from '../../protocol/model.js';
import { knownOptionsOf, permanentBackendError } from './backend-options.js';
import { type CannedReply, createCannedModel, promptTextOf } from './canned-model.js';
import { readScript, resolveScriptPath, type ScriptStep } from './script.js';

/** A script that a turn did not get to the end of. */
export interface UnfinishedScript {
  readonly script: string;
  readonly turn: string;
  readonly left: number;
}

/** A backend that can tell which scripts were not used up, so that a test can fail on them. */
export interface ScriptedProvider extends ModelProvider {
  leftovers(): readonly UnfinishedScript[];
}

/** How far a turn is in a script. */
interface ScriptProgress {
  readonly script: string;
  readonly turn: string;
  readonly steps: readonly ScriptStep[];
  position: number;
}

/** A backend that answers from script files. */
export function scriptedProvider(): ScriptedProvider {
  const known = new Map<string, ScriptProgress>();
  return {
    id: 'scripted',
    defaultModel: '',
    async open(ref, { origin, turnId, replyCount }) {
      knownOptionsOf(ref, []);
      if (ref.model === '')
        throw permanentBackendError("The backend 'scripted' needs the path of a script file as its model.");
      const script = await resolveScriptPath(ref.model, origin);
      const key = JSON.stringify([turnId, script]);
      const steps = known.get(key)?.steps ?? (await readScript(script));
      // Another branch of the turn may have been here while the file was read.
      const progress = known.get(key) ?? { script, turn: turnId, steps, position: replyCount };
      known.set(key, progress);
      return createCannedModel('scripted', ref.model, (call) => replyFor(progress, call));
    },
    leftovers: () =>
      [...known.values()]
        .map(({ script, turn, steps, position }) => ({ script, turn, left: steps.length - position }))
        .filter(({ left }) => left > 0),
  };
}

function replyFor(progress: ScriptProgress, call: ModelCallOptions): CannedReply {
  const { script, steps } = progress;
  const position = progress.position++;
  const step = steps[position];
  if (step === undefined) {
    throw permanentBackendError(
      `The script '${script}' has ${steps.length} steps, and was called for element ${position}; add it.`,
    );
  }
  const request = promptTextOf(call.prompt);
  const missing = step.expect.filter((part) => !request.includes(part));
  if (missing.length > 0) {
    const parts = missing.map((part) => JSON.stringify(part)).join(', ');
    throw permanentBackendError(
      `The script '${script}', element ${position}, expects ${parts} in the request, which is not there.`,
    );
  }
  if (step.error === undefined) return step.reply;
  const { message, retryable } = step.error;
  return { ...step.reply, error: new LoopError('BACKEND_FAILED', message.slice(0, 500), { retryable }) };
}
