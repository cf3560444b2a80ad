/**
 * The provider `scripted`: replies come from a file or from a list, one step per call. A turn starts at the step after the recorded
 * replies of the script: those of the turn for a prompt, those of the session for an agent. After that, this process
 * counts the calls. Failed calls leave no reply in the journal, so a turn that continues in a new process repeats their
 * steps.
 */
import { LoopError } from '../../base/errors.js';
import type { ModelProvider } from '../../loops/model.js';
import type { ModelCallOptions } from '../../protocol/model.js';
import { knownOptionsOf, permanentBackendError } from './backend-options.js';
import { type CannedReply, createCannedModel, promptTextOf } from './canned-model.js';
import { parseScript, readScript, resolveScriptPath, type ScriptedReply, type ScriptStep } from './script.js';

/** A script with steps that a turn has not used. */
export interface UnfinishedScript {
  /** The real path of the script; of a list of replies, the name of the model. */
  readonly script: string;
  /** The id of the turn. */
  readonly turn: string;
  /** The number of unused steps. */
  readonly remainingSteps: number;
}

/** A provider that replies from script files or from a list. */
export interface ScriptedProvider extends ModelProvider {
  /**
   * Returns the scripts with unused steps, for each turn that has opened one in this process, so that a test can assert
   * that there are none.
   */
  unfinishedScripts(): readonly UnfinishedScript[];
}

/** The progress of a turn in a script. */
interface ScriptProgress {
  readonly script: string;
  readonly turn: string;
  readonly steps: readonly ScriptStep[];
  /** The zero-based index of the next step. */
  position: number;
}

/** A script that was found for a model. */
interface FoundScript {
  readonly script: string;
  read(): Promise<readonly ScriptStep[]>;
}

type FindScript = (...args: Parameters<ModelProvider['open']>) => Promise<FoundScript>;

/**
 * Creates a provider whose models reply from a script. With a list of replies, each of its models replies from that
 * list, whatever its name, so that a test can replace a provider. Without one, the name of a model is the path of a
 * script file. Throws BACKEND_FAILED if the list is invalid.
 *
 * @example
 * const anthropic = scriptedProvider([{ text: 'Hello.' }]);
 * const rondo = await createRondo({ store: 'memory:', models: { anthropic } });
 * // After the turn:
 * expect(anthropic.unfinishedScripts()).toEqual([]);
 */
export function scriptedProvider(replies?: readonly ScriptedReply[]): ScriptedProvider {
  const progressByTurn = new Map<string, ScriptProgress>();
  const findScript = replies === undefined ? findScriptFile : findList(replies);
  return {
    id: 'scripted',
    defaultModel: replies === undefined ? '' : 'scripted-1',
    repliesLocally: true,
    async open(ref, options) {
      const { turnId, replyCount } = options;
      const { script, read } = await findScript(ref, options);
      const key = JSON.stringify([turnId, script]);
      const steps = progressByTurn.get(key)?.steps ?? (await read());
      // A parallel branch of the turn may have added the progress while the file was read.
      const progress = progressByTurn.get(key) ?? { script, turn: turnId, steps, position: replyCount };
      progressByTurn.set(key, progress);
      return createCannedModel('scripted', ref.model, (call) => replyFor(progress, call));
    },
    unfinishedScripts: () =>
      [...progressByTurn.values()]
        .map(({ script, turn, steps, position }) => ({ script, turn, remainingSteps: steps.length - position }))
        .filter(({ remainingSteps }) => remainingSteps > 0),
  };
}

const findScriptFile: FindScript = async (ref, { origin }) => {
  knownOptionsOf(ref, []);
  if (ref.model === '')
    throw permanentBackendError("The backend 'scripted' needs the path of a script file as its model.");
  const script = await resolveScriptPath(ref.model, origin);
  return { script, read: () => readScript(script) };
};

/** Returns a search that finds the same list for every model. */
function findList(replies: readonly ScriptedReply[]): FindScript {
  const steps = parseScript(replies, 'The list of replies');
  return async ({ model }) => ({ script: model, read: async () => steps });
}

function replyFor(progress: ScriptProgress, call: ModelCallOptions): CannedReply {
  const { script, steps } = progress;
  const position = progress.position++;
  const step = steps[position];
  if (step === undefined) {
    throw permanentBackendError(
      `The script '${script}' has ${steps.length} steps, but element ${position} was requested; add it to the script.`,
    );
  }
  const request = promptTextOf(call.prompt);
  const missing = step.expect.filter((part) => !request.includes(part));
  if (missing.length > 0) {
    const parts = missing.map((part) => JSON.stringify(part)).join(', ');
    throw permanentBackendError(
      `The script '${script}', element ${position}, expects ${parts} in the request, which does not contain it.`,
    );
  }
  if (step.error === undefined) return step.reply;
  const { message, retryable } = step.error;
  return { ...step.reply, error: new LoopError('BACKEND_FAILED', message.slice(0, 500), { retryable }) };
}
