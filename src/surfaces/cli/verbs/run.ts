/** `rondo run`: runs one turn of a loop. */
import type { TurnRequest } from '../../../host/host.js';
import { type Definitions, loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { findLoop, type LoopReference, missingLoopHints, warnAboutLoop } from '../definitions.js';
import { assertSessionId } from '../find-turn.js';
import { readGrant } from '../grant-file.js';
import { readJsonInput } from '../input.js';
import { printResult, runWithLiveOutput } from '../live-run.js';
import { openHost, warnUntrustedEnvFile } from '../open-host.js';
import { pricingOf } from '../pricing.js';
import type { Terminal } from '../terminal.js';
import { listOption, textOption, type VerbHandler, type VerbOptions } from '../verb.js';

/** Handles `rondo run`. */
export const run: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  assertOptions(options);
  const settings = await loadSettings(settingsInput);
  const input = await readJsonInput('--input', textOption(options.input) ?? '{}', terminal);
  const grant = await readGrant(options, settingsInput);
  const [version, model] = [textOption(options.version), textOption(options.model)];
  const { wanted, definitions } = await findLoop(String(args[0]), version, settings, model);
  warnAboutLoop(wanted, definitions, terminal);
  warnUntrustedEnvFile(settings, terminal);
  const isRegistered = definitions.registry.find(wanted.id, wanted.version) !== undefined;
  const { host, close } = await openHost(settings, { definitions, createIfMissing: isRegistered }, terminal);
  try {
    const request = { loop: wanted.id, input, ...turnRequestOptions(wanted, options), ...grant };
    const live = { terminal, price: pricingOf(settings.config), watch: options.watch === true };
    const result = await runWithLiveOutput(live, (turnOptions) => host.run(request, turnOptions));
    if (result.status === 'error' && result.error.code === 'LOOP_NOT_FOUND' && !isRegistered)
      printMissingLoopHints(wanted, definitions, terminal);
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};

function assertOptions({ session, key, as, approver }: VerbOptions): void {
  assertSessionId(textOption(session));
  if (typeof key === 'string' && (key === '' || key.length > 1000)) {
    throw new UsageError('--key must be text of 1 to 1,000 characters.');
  }
  if ([as, ...listOption(approver)].some((who) => typeof who === 'string' && who.trim() === ''))
    throw new UsageError('--as and --approver must not be empty.');
}

function turnRequestOptions({ version }: LoopReference, options: VerbOptions): Omit<TurnRequest, 'loop' | 'input'> {
  const [sessionId, key, principal] = [textOption(options.session), textOption(options.key), textOption(options.as)];
  const approvers = listOption(options.approver);
  return {
    ...(version !== undefined && { version }),
    ...(sessionId !== undefined && { sessionId }),
    ...(key !== undefined && { key }),
    ...(principal !== undefined && { principal }),
    ...(approvers.length > 0 && { approvers }),
  };
}

function printMissingLoopHints(wanted: LoopReference, definitions: Definitions, terminal: Terminal): void {
  for (const line of missingLoopHints(wanted, definitions)) terminal.printToStderr(line);
}
