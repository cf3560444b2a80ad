/** `rondo keys`: shows, creates, accepts, rotates and revokes the keys of receipts. */
import { setTimeout } from 'node:timers/promises';
import type { RotationDeps } from '../../../host/receipts/key-rotation.js';
import type { KeyRole, TrustedKey } from '../../../protocol/receipt.js';
import { loadSettings, openReceiptKeys, type ProjectSettings, type StoredKeys } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { openHostForReading } from '../open-host.js';
import { receiptsOf } from '../receipt-access.js';
import type { Terminal } from '../terminal.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

const ROLES: readonly KeyRole[] = ['receipt', 'checkpoint'];
const TABLE_HEAD = ['KEY', 'ROLE', 'STATE', 'FROM', 'UNTIL', 'REVOKED', 'PUBLIC KEY'];

/** Handles `rondo keys`. */
export const keys: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const [command = 'show', kid] = [textOption(args[0]), textOption(args[1])];
  const settings = await loadSettings(settingsInput);
  const stored = await openReceiptKeys(settings);
  if (command === 'create') for (const role of ROLES) await stored.signer(role);
  else if (command === 'accept') await stored.accept();
  else if (command === 'rotate') await rotate(stored, roleOf(textOption(options.role)), settings, terminal);
  else if (command === 'revoke') {
    if (kid === undefined) throw new UsageError('Name the key to revoke: rondo keys revoke KEY');
    if (options.all === true) await stored.revoke(kid, true);
    else await revoke(stored, kid, settings, terminal);
  } else if (command !== 'show')
    throw new UsageError(`There is no command "keys ${command}"; there are show, create, accept, rotate and revoke.`);
  const document = await stored.list();
  const notice = await stored.foreignKeysNotice();
  if (notice !== undefined) terminal.printToStderr(notice);
  if (json) await terminal.printJson(document);
  else if (document.keys.length > 0) {
    const { renderTable } = await import('../table.js');
    const rows = document.keys.map((key) => rowOf(key, stateOf(key, stored)));
    await terminal.print(`${renderTable(rows, { ...terminal.displayOf(), head: TABLE_HEAD })}\n`);
  } else
    terminal.printToStderr('There are no keys yet. They are created with the first receipt, or by: rondo keys create');
  return exitCodes.ok;
};

function roleOf(role = 'receipt'): KeyRole {
  const known = ROLES.find((each) => each === role);
  if (known === undefined) throw new UsageError(`--role must be receipt or checkpoint, not "${role}".`);
  return known;
}

async function revoke(keys: StoredKeys, kid: string, settings: ProjectSettings, terminal: Terminal): Promise<void> {
  const { revokeKey } = await import('../../../host/receipts/key-rotation.js');
  const known = (await keys.list()).keys.find((key) => key.kid === kid);
  const role = known !== undefined && stateOf(known, keys) === 'signs' ? known.role : undefined;
  await revokeKey(rotationDeps(keys, settings, terminal), kid, role);
}

function rotationDeps(keys: StoredKeys, settings: ProjectSettings, terminal: Terminal): RotationDeps {
  const sleep = (ms: number): Promise<unknown> => {
    terminal.printToStderr(`Waiting ${ms / 1000} seconds, until running processes use the new key.`);
    return setTimeout(ms);
  };
  return { keys, checkpoint: () => checkpoint(settings, terminal), sleep };
}

async function rotate(keys: StoredKeys, role: KeyRole, settings: ProjectSettings, terminal: Terminal): Promise<void> {
  const { rotateKey } = await import('../../../host/receipts/key-rotation.js');
  const isEnded = await rotateKey(rotationDeps(keys, settings, terminal), role);
  if (!isEnded)
    terminal.printToStderr('Several stores use these keys, so the replaced key counts for 10,000 further receipts.');
}

/**
 * Makes a checkpoint of the log, and returns the position of its next receipt: what a key may sign depends on it, so the
 * log must not become shorter.
 */
async function checkpoint(settings: ProjectSettings, terminal: Terminal): Promise<number> {
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    return await receiptsOf(host).checkpoint();
  } finally {
    await close();
  }
}

/** Returns whether a key signs now. The signer of the environment signs everything. */
function stateOf({ kid, until, revoked }: TrustedKey, { environmentSigner }: StoredKeys): string {
  if (revoked !== undefined) return 'revoked';
  if (until !== undefined) return 'replaced';
  return environmentSigner === undefined || environmentSigner.kid === kid ? 'signs' : 'not used';
}

function rowOf({ kid, role, from, until, revoked, publicKey }: TrustedKey, state: string): readonly string[] {
  return [kid, role ?? 'both', state, `${from ?? ''}`, `${until ?? ''}`, `${revoked ?? ''}`, publicKey];
}
