/** `rondo keys`: shows, creates, rotates and revokes the keys of receipts. */
import type { KeyRole, TrustedKey } from '../../../protocol/receipt.js';
import { loadSettings, openReceiptKeys, type ProjectSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { openHostForReading } from '../open-host.js';
import { receiptsOf } from '../receipt-access.js';
import type { Terminal } from '../terminal.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

const ROLES: readonly KeyRole[] = ['receipt', 'checkpoint'];
const TABLE_HEAD = ['KEY', 'ROLE', 'FROM', 'UNTIL', 'REVOKED', 'PUBLIC KEY'];

/** Handles `rondo keys`. */
export const keys: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const [command = 'show', kid] = [textOption(args[0]), textOption(args[1])];
  const settings = await loadSettings(settingsInput);
  const stored = await openReceiptKeys(settings);
  if (command === 'create') for (const role of ROLES) await stored.signer(role);
  else if (command === 'rotate')
    await stored.rotate(roleOf(textOption(options.role)), await checkpoint(settings, terminal));
  else if (command === 'revoke') {
    if (kid === undefined) throw new UsageError('Name the key to revoke: rondo keys revoke KEY');
    await stored.revoke(kid, options.all === true ? true : await checkpoint(settings, terminal));
  } else if (command !== 'show')
    throw new UsageError(`There is no command "keys ${command}"; there are show, create, rotate and revoke.`);
  const document = await stored.list();
  if (json) await terminal.printJson(document);
  else if (document.keys.length > 0) {
    const { renderTable } = await import('../table.js');
    await terminal.print(`${renderTable(document.keys.map(rowOf), { ...terminal.displayOf(), head: TABLE_HEAD })}\n`);
  } else
    terminal.printToStderr('There are no keys yet. They are created with the first receipt, or by: rondo keys create');
  return exitCodes.ok;
};

function roleOf(role = 'receipt'): KeyRole {
  const known = ROLES.find((each) => each === role);
  if (known === undefined) throw new UsageError(`--role must be receipt or checkpoint, not "${role}".`);
  return known;
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

function rowOf({ kid, role, from, until, revoked, publicKey }: TrustedKey): readonly string[] {
  return [kid, role ?? 'both', `${from ?? ''}`, `${until ?? ''}`, `${revoked ?? ''}`, publicKey];
}
