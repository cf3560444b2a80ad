// The operator's authority, guard by guard: each check fails on a copy without its guard.

import type { RequirementId } from '../requirements.js';
import { authorityChecks, type Composing, composing } from './authority-checks.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

type Disaster = keyof typeof authorityChecks;

const guard = (id: RequirementId, disaster: Disaster, file: string, from: string, to: string): Guard<Composing> => ({
  ...{ id, disaster, file, from, to },
  check: authorityChecks[disaster],
});

const guards: readonly Guard<Composing>[] = [
  guard(
    'authority.trust',
    'a clone ships the file of its operator',
    'surfaces/authority.ts',
    'if (!isWithin || isHome) continue;',
    'continue;',
  ),
  guard(
    'authority.trust',
    'a file that others can write decides',
    'adapters/files/operator.ts',
    'assertOwn(file);\n',
    '',
  ),
  guard(
    'authority.verbs',
    'listing a clone imports its code',
    'adapters/files/load.ts',
    'if (!trusted) return',
    'if (false) return',
  ),
  guard(
    'authority.trust',
    'a journal vouches for its own definitions',
    'surfaces/compose.ts',
    "store.kind === 'memory' || trusts(dirname(store.path)) ? trusts : () => false",
    'trusts',
  ),
  guard(
    'authority.trust',
    'a journal vouches for its own definitions',
    'host/pin.ts',
    'return now.digest === digest(canonical(definition));',
    'return true;',
  ),
  guard(
    'authority.paths',
    'a clone chooses where files are written',
    'adapters/files/config.ts',
    'assertConfined(config, home, confined(home));',
    '',
  ),
  guard(
    'authority.send',
    'a definition sends a variable in a header',
    'adapters/tools/http.ts',
    'variables.find((variable) => !permits.maySend(variable, url))',
    'undefined',
  ),
  guard(
    'authority.send',
    'a config sends a variable to a server',
    'surfaces/compose.ts',
    'if (apiKeyEnv !== undefined && !maySend(apiKeyEnv, url)) {',
    'if (false) {',
  ),
  guard(
    'authority.send',
    'a definition sends a variable as a key',
    'adapters/models/providers.ts',
    'if (variable !== undefined && !permits.maySend(variable, url)) {',
    'if (false) {',
  ),
  guard(
    'authority.send',
    'a variable is sent in clear text',
    'base/permits.ts',
    " && (host.includes('://') || isSealed(url))",
    '',
  ),
  guard(
    'authority.send',
    'a redirect takes a key along',
    'adapters/models/fetch.ts',
    "redirect: 'manual'",
    "redirect: 'follow'",
  ),
  guard(
    'authority.reach',
    'a name leads to this machine',
    'base/public-lookup.ts',
    '!addresses.every(isPublic)',
    'false',
  ),
  guard(
    'authority.reach',
    'a name leads to this machine',
    'adapters/tools/http.ts',
    'const publicOnly = !trusted && !permits.mayReach(url);',
    'const publicOnly = false;',
  ),
  guard(
    'authority.reach',
    'an address of this machine is reached',
    'adapters/tools/http.ts',
    'return isKnownPrivate(url) && !permits.mayReach(url) ? reachRefusal(url) : undefined;',
    'return undefined;',
  ),
  guard(
    'authority.reach',
    'a model of a trusted definition is lent',
    'adapters/models/providers.ts',
    ', access.fetch === plainFetch]',
    ']',
  ),
];

proveGuards(() => new Workshop<Composing>(composing), guards);
