/** `rondo verify`: verifies a file of receipts, the receipts of a turn, or all of the store. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ReceiptVerdict } from '../../../protocol/receipt.js';
import { isRunxReceipt, verifyRunx } from '../../../views/receipt/runx/verify-runx.js';
import { verifyBundle } from '../../../views/receipt/verify-bundle.js';
import { loadSettings, loadVerifierKeys, type ProjectSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { findTurns } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { printVerdict, readReceiptFile, receiptsOf } from '../receipt-access.js';
import type { Terminal } from '../terminal.js';
import { textOption, type VerbHandler, type VerbOptions } from '../verb.js';

/** Handles `rondo verify`. */
export const verify: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const reference = textOption(args[0]);
  if ((reference === undefined) === (options.all !== true))
    throw new UsageError('Give either a file or a turn to verify, or --all.');
  const settings = await loadSettings(settingsInput);
  const file = reference === undefined ? undefined : resolve(settings.cwd, reference);
  const verdict =
    file !== undefined && existsSync(file)
      ? await verifyFile(file, settings, options)
      : await verifyStored(reference, settings, options, terminal);
  return printVerdict(verdict, terminal, json);
};

/** Verifies a file. No store is opened, and no key is taken from the file. */
async function verifyFile(file: string, settings: ProjectSettings, options: VerbOptions): Promise<ReceiptVerdict> {
  const bytes = await readReceiptFile(file);
  const keysFile = textOption(options.keys);
  const loaded = await loadVerifierKeys(keysFile && resolve(settings.cwd, keysFile), settings);
  if (loaded === undefined)
    throw new UsageError(`There are no keys to verify ${file} with. Pass the keys that you trust: --keys FILE`);
  const { keys, trust } = loaded;
  if (!isRunxReceipt(bytes)) return verifyBundle(bytes, keys, { trust }).verdict;
  const allowLocalDevelopmentSignatures = options.allowLocalDevelopmentSignatures === true;
  return { ...verifyRunx(bytes, keys, { allowLocalDevelopmentSignatures }), trust };
}

async function verifyStored(
  reference: string | undefined,
  settings: ProjectSettings,
  options: VerbOptions,
  terminal: Terminal,
): Promise<ReceiptVerdict> {
  const keysFile = textOption(options.keys);
  const loaded = keysFile === undefined ? undefined : await loadVerifierKeys(resolve(settings.cwd, keysFile), settings);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const archive = receiptsOf(host);
    const turns = reference === undefined ? undefined : await findTurns(host, reference);
    const sessions = turns && [...new Set(turns.map(({ sessionId }) => sessionId))];
    return await archive.verify(sessions, { trusted: loaded?.keys });
  } finally {
    await close();
  }
}
