/** `rondo verify`: verifies a file of receipts, the receipts of a turn, or all of the store. */
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { ReceiptVerdict } from '../../../protocol/receipt.js';
import { isRunxReceipt, verifyRunx } from '../../../views/receipt/runx/verify-runx.js';
import { verifyBundleParts } from '../../../views/receipt/verify-bundle.js';
import { loadSettings, loadVerifierKeys, type ProjectSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { findReferencedTurns, LAST_TURN } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { printVerdict, readReceiptFile, receiptsOf } from '../receipt-access.js';
import { describeDamage, recordedDamage, verifyStore } from '../store-check.js';
import type { Terminal } from '../terminal.js';
import { textOption, type VerbHandler, type VerbOptions } from '../verb.js';

/** Handles `rondo verify`. */
export const verify: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const reference = textOption(args[0]);
  if ((reference === undefined) === (options.all !== true))
    throw new UsageError('Give either a file or a turn to verify, or --all.');
  const settings = await loadSettings(settingsInput);
  const file = reference === undefined ? undefined : resolve(settings.cwd, reference);
  const isFile = file !== undefined && existsSync(file);
  if (isFile && (await isStored(String(reference), settings, terminal)))
    throw new UsageError(
      `"${reference}" is a file here, and a turn or session of the store. Write ./${reference} for the file, or verify the turn in another directory.`,
    );
  const verdict = isFile
    ? await verifyFile(file, settings, options)
    : await verifyStored(reference, settings, options, terminal);
  const named = isFile ? { ...verdict, subject: { ...verdict.subject, file: String(reference) } } : verdict;
  return printVerdict(named, terminal, json);
};

/** Names that can only be meant as files: a store is not opened for them. */
const FILE_NAME = /[/\\]|\.json$/;

/** True if a name refers to a turn or a session of the store. */
async function isStored(reference: string, settings: ProjectSettings, terminal: Terminal): Promise<boolean> {
  if (FILE_NAME.test(reference)) return false;
  if (reference === LAST_TURN) return true;
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    await findReferencedTurns(host, reference);
    return true;
  } catch (thrown) {
    // Several turns, or a session that cannot be read, are meant by the name as well.
    return !(thrown instanceof LoopError) || thrown.code !== 'TURN_NOT_FOUND';
  } finally {
    await close();
  }
}

/** Verifies a file. No store is opened, and no key is taken from the file. */
async function verifyFile(file: string, settings: ProjectSettings, options: VerbOptions): Promise<ReceiptVerdict> {
  if (statSync(file).isDirectory())
    throw new UsageError(`${file} is a directory. Name one of its files, such as ${file}/NAME.receipts.json.`);
  const content = readReceiptFile(file);
  const keysFile = textOption(options.keys);
  const loaded = await loadVerifierKeys(keysFile && resolve(settings.cwd, keysFile), settings);
  if (loaded === undefined)
    throw new UsageError(`There are no keys to verify ${file} with. Pass the keys that you trust: --keys FILE`);
  const { keys, trust } = loaded;
  if (!Buffer.isBuffer(content)) return verifyBundleParts(content, keys, { trust }).verdict;
  if (!isRunxReceipt(content)) return verifyBundleParts([content], keys, { trust }).verdict;
  const allowLocalDevelopmentSignatures = options.allowLocalDevelopmentSignatures === true;
  return { ...verifyRunx(content, keys, { allowLocalDevelopmentSignatures }), trust };
}

async function verifyStored(
  reference: string | undefined,
  settings: ProjectSettings,
  options: VerbOptions,
  terminal: Terminal,
): Promise<ReceiptVerdict> {
  const keysFile = textOption(options.keys);
  const loaded = keysFile === undefined ? undefined : await loadVerifierKeys(resolve(settings.cwd, keysFile), settings);
  const { host, maintenance, store, close } = await openHostForReading(settings, terminal);
  try {
    const found = reference === undefined ? undefined : await findReferencedTurns(host, reference);
    const unreadable = reference === LAST_TURN ? await unreadableSessions(host) : [];
    const sessions = found && [...new Set([...found.sessionIds, ...unreadable])];
    // All of the store, also what no receipt covers; the damage is recorded.
    const checked =
      found === undefined && maintenance !== undefined ? await verifyStore(maintenance, terminal) : undefined;
    const damaged = [...(await recordedDamage({ maintenance, store })), ...(checked?.damage ?? [])]
      .filter(({ session }) => session === undefined || sessions === undefined || sessions.includes(session))
      .map(describeDamage);
    const damage = [...new Set(damaged)];
    const verified = await receiptsOf(host).verify(sessions, { trusted: loaded?.keys, damage });
    const loop = found?.named.hostedLoop;
    const verdict = loop === undefined ? verified : withMissingTurns(verified, await unsealedTurns(host, loop));
    return { ...verdict, subject: { ...verdict.subject, ...found?.named } };
  } finally {
    await close();
  }
}

/** Returns the keys of the turns of a hosted loop that ended with a receipt which is not in the store. */
async function unsealedTurns(host: Host, loop: string): Promise<readonly string[]> {
  // Read before the receipts: the receipt of a turn is stored before its end is recorded in the loop.
  const turns = await host.hosted.turns(loop);
  const stored = new Set((await receiptsOf(host).list()).map(({ id }) => id));
  return turns.flatMap(({ key, receipt }) => (receipt === undefined || stored.has(receipt) ? [] : [key]));
}

/** Returns a verdict that says which turns have no receipt: a session that was removed leaves no other trace in the loop. */
function withMissingTurns(verdict: ReceiptVerdict, keys: readonly string[]): ReceiptVerdict {
  if (keys.length === 0) return verdict;
  const note = `the receipts of ${keys.join(', ')} are missing`;
  const checks = verdict.checks.map((check) => (check.name === 'completeness' ? { ...check, ok: false, note } : check));
  return { ...verdict, complete: false, checks, reasons: [...new Set(['receipts_missing', ...verdict.reasons])] };
}

/** Returns the sessions that cannot be read: the newest turn may be one of theirs, so they are verified with it. */
async function unreadableSessions(host: Host): Promise<readonly string[]> {
  const turns = await host.archive.turns();
  return turns.flatMap(({ turnId, sessionId }) => (turnId === sessionId ? [sessionId] : []));
}
