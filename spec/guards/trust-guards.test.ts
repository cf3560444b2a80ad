// The guards of what `rondo trust` writes, each broken in turn.

import type { RequirementId } from '../requirements.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';
import { type Trusting, trustChecks, trusting } from './trust-checks.js';

type Promised = keyof typeof trustChecks;

function guard(id: RequirementId, promise: Promised, file: string, from: string, to: string): Guard<Trusting> {
  return { id, disaster: promise, check: trustChecks[promise], file, from, to };
}

const operator = 'adapters/files/operator.ts';
const verb = 'surfaces/cli/verbs/trust.ts';
const authority = 'surfaces/authority.ts';

proveGuards(
  () => new Workshop<Trusting>(trusting),
  [
    guard(
      'authority.trust',
      "the operator's file and its directory are its user's alone",
      operator,
      'O_WRONLY, 0o600)',
      'O_WRONLY, 0o644)',
    ),
    guard(
      'authority.trust',
      "the operator's file and its directory are its user's alone",
      operator,
      'mode: 0o700',
      'mode: 0o755',
    ),
    guard(
      'authority.trust',
      "the operator's file is not written through a planted draft",
      operator,
      `rmSync(draft, { force: true });
    handle = await open(draft, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);`,
      'handle = await open(draft, constants.O_CREAT | constants.O_WRONLY, 0o600);',
    ),
    guard(
      'authority.trust',
      "an operator's file that is a link stays one, and its target is replaced",
      operator,
      '?.isSymbolicLink() ? realpathSync(file) : file;',
      '?.isSymbolicLink() ? file : file;',
    ),
    guard(
      'authority.trust',
      "a write of the operator's file that fails leaves nothing behind",
      operator,
      'rmSync(draft, { force: true });\n    const reason',
      'const reason',
    ),
    guard(
      'authority.trust',
      'a directory of any name is remembered as it is',
      operator,
      ".replaceAll('\\u007f', '\\\\u007f')",
      '',
    ),
    guard(
      'authority.trust',
      "the operator's file is not written into the project",
      verb,
      'assertOutside(file, asked);\n',
      '',
    ),
    guard(
      'authority.trust',
      "the operator's file is not written into the project through a link",
      authority,
      ' || isInside(nearestReal(place), nearestReal(file))',
      '',
    ),
    guard(
      'authority.trust',
      'a directory that holds everything is not trusted',
      verb,
      'isInside(real, home)',
      'real === home',
    ),
    guard('authority.trust', 'the real path of a directory is remembered', verb, 'return [real];', 'return [path];'),
    guard(
      'authority.trust',
      'a remembered directory that is a link now is not trusted',
      authority,
      "(source === 'file' && real !== directory)",
      'false',
    ),
  ],
);
