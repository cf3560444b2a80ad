// The guards of what `rondo trust` writes, each broken in turn.

import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';
import { type Trusting, trustChecks, trusting } from './trust-checks.js';

type Promised = keyof typeof trustChecks;

function guard(promise: Promised, file: string, from: string, to: string): Guard<Trusting> {
  return { id: 'authority.trust', disaster: promise, check: trustChecks[promise], file, from, to };
}

const operator = 'adapters/files/operator.ts';
const verb = 'surfaces/cli/verbs/trust.ts';
const authority = 'surfaces/authority.ts';

proveGuards(
  () => new Workshop<Trusting>(trusting),
  [
    guard(
      "the operator's file and its directory are its user's alone",
      operator,
      'O_WRONLY, 0o600)',
      'O_WRONLY, 0o644)',
    ),
    guard("the operator's file and its directory are its user's alone", operator, 'mode: 0o700', 'mode: 0o755'),
    guard(
      "the operator's file is not written through a planted draft",
      operator,
      `rmSync(draft, { force: true });
    handle = await open(draft, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);`,
      'handle = await open(draft, constants.O_CREAT | constants.O_WRONLY, 0o600);',
    ),
    guard(
      "an operator's file that is a link stays one, and its target is replaced",
      operator,
      '?.isSymbolicLink() ? realpathSync(file) : file;',
      '?.isSymbolicLink() ? file : file;',
    ),
    guard(
      "a write of the operator's file that fails leaves nothing behind",
      operator,
      'rmSync(draft, { force: true });\n    const reason',
      'const reason',
    ),
    guard('a directory of any name is remembered as it is', operator, ".replaceAll('\\u007f', '\\\\u007f')", ''),
    guard("the operator's file is not written into the project", verb, 'assertOutside(file, asked);\n', ''),
    guard(
      "the operator's file is not written into the project through a link",
      authority,
      ' || isInside(nearestReal(place), nearestReal(file))',
      '',
    ),
    guard('a directory that holds everything is not trusted', verb, 'isInside(real, home)', 'real === home'),
    guard('the real path of a directory is remembered', verb, 'return [real];', 'return [path];'),
    guard(
      'a remembered directory that is a link now is not trusted',
      authority,
      "(source === 'file' && real !== directory)",
      'false',
    ),
  ],
);
