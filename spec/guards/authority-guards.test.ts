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
    "an operator's file that a clone ships is not believed",
    'surfaces/authority.ts',
    'if (!isWithin || isHome) continue;',
    'continue;',
  ),
  guard(
    'authority.trust',
    'a file that others can write is not believed',
    'adapters/files/operator.ts',
    'assertOwn(file);\n',
    '',
  ),
  guard(
    'authority.verbs',
    'listing a clone imports none of its code',
    'adapters/files/load.ts',
    'if (!trusted) return',
    'if (false) return',
  ),
  guard(
    'authority.trust',
    'a journal gives its own definitions no trust',
    'surfaces/compose.ts',
    "store.kind === 'memory' || trusts(dirname(store.path)) ? trusts : () => false",
    'trusts',
  ),
  guard(
    'authority.trust',
    'a journal gives its own definitions no trust',
    'host/pin.ts',
    'return now.digest === digest(canonical(definition));',
    'return true;',
  ),
  guard(
    'authority.paths',
    'a clone does not choose where files are written',
    'adapters/files/config.ts',
    'assertConfined(config, home, confined(home));',
    '',
  ),
  guard(
    'authority.send',
    'a definition sends no variable in a header that the operator did not permit',
    'adapters/tools/http.ts',
    'variables.find((variable) => !permits.maySend(variable, url))',
    'undefined',
  ),
  guard(
    'authority.send',
    'a config sends no variable to a server that the operator did not permit',
    'surfaces/compose.ts',
    'if (apiKeyEnv !== undefined && !maySend(apiKeyEnv, url)) {',
    'if (false) {',
  ),
  guard(
    'authority.send',
    'a definition sends no variable as a key that the operator did not permit',
    'adapters/models/providers.ts',
    'if (variable !== undefined && !permits.maySend(variable, url)) {',
    'if (false) {',
  ),
  guard(
    'authority.send',
    'no variable is sent in clear text',
    'base/permits.ts',
    " && (host.includes('://') || isSealed(url))",
    '',
  ),
  guard(
    'authority.send',
    'a redirect is not followed with a key',
    'adapters/models/fetch.ts',
    "redirect: 'manual'",
    "redirect: 'follow'",
  ),
  guard(
    'authority.reach',
    'a name that leads to this machine is not connected to',
    'base/public-lookup.ts',
    '!addresses.every(isPublic)',
    'false',
  ),
  guard(
    'authority.reach',
    'a name that leads to this machine is not connected to',
    'adapters/tools/http.ts',
    'const publicOnly = !trusted && !permits.mayReach(url);',
    'const publicOnly = false;',
  ),
  guard(
    'authority.reach',
    'an address of this machine is refused',
    'adapters/tools/http.ts',
    'return isKnownPrivate(url) && !permits.mayReach(url) ? reachRefusal(url) : undefined;',
    'return undefined;',
  ),
  guard(
    'authority.reach',
    'a model of a trusted definition is not shared with one that is not trusted',
    'adapters/models/providers.ts',
    ', access.fetch === plainFetch]',
    ']',
  ),
];

proveGuards(() => new Workshop<Composing>(composing), guards);
