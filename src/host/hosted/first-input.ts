/** The input of the first turn of a hosted loop, as far as it is known before that turn. */
import { compileJsonPath } from '../../json/path.js';
import { compileMapping, pathPrefixesOf } from '../../loops/mapping.js';
import type { RegisteredLoop } from '../../loops/registry.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { LoopFlaw } from './loop-flaws.js';
import { isEventDriven } from './schedule.js';

const OPTIONAL = 'optional:';
const LITERAL = 'literal:';
/** The members of the projection that are known before the first turn, or known to be absent. */
const KNOWN_MEMBERS: ReadonlySet<unknown> = new Set(['loop', 'turn', 'input', 'last', 'signal', 'handoff']);

/** Returns why the first turn gets no input, or one that its loop refuses. `hasCode` is true if code makes its inputs. */
export function firstInputFlawsOf(
  document: HostedLoopDocument,
  registered: RegisteredLoop,
  hasCode: boolean,
): readonly LoopFlaw[] {
  const missing = hasCode ? [] : missingValuesOf(document);
  if (missing.length > 0) return missing;
  const first = firstInputOf(document, hasCode);
  if (first === undefined) return [];
  const issues = registered.input.issues(first.input);
  // guard: first-input-fits-the-loop
  return issues.map(({ path, message }) => ({
    path: `${first.path}${path}`,
    reason: `does not fit the loop "${document.loop}": it ${message}`,
  }));
}

/** Returns the paths of `next` that match nothing before the first turn, if that turn needs them. */
function missingValuesOf(document: HostedLoopDocument): readonly LoopFlaw[] {
  const { next, input, signals } = document;
  const byEvent = isEventDriven(document);
  // A turn that a handoff causes gets the input of the handoff.
  if (next === undefined || (byEvent ? signals === undefined : input !== undefined)) return [];
  const absent: ReadonlySet<unknown> = new Set(byEvent ? ['last', 'handoff'] : ['last', 'signal', 'handoff']);
  const texts = typeof next === 'string' ? [['/next', next] as const] : Object.entries(next).map(pointerOfMember);
  const advice = byEvent ? '' : ', or add "input", which the first turn gets';
  // guard: first-input-has-its-values
  return texts
    .filter(([path, text]) => absent.has(requiredMemberOf(text, path)))
    .map(([path, text]) => ({
      path,
      reason: `is ${text}, which the first turn does not have. Write "${OPTIONAL}${text}"${advice}`,
    }));
}

function pointerOfMember([member, text]: readonly [string, string]): readonly [path: string, text: string] {
  return [`/next/${member.replaceAll('~', '~0').replaceAll('/', '~1')}`, text];
}

/** Returns the member of the projection without which a mapping fails; undefined if there is none. */
function requiredMemberOf(text: string, where: string): unknown {
  if (text.startsWith(LITERAL) || text.startsWith(OPTIONAL)) return undefined;
  return compileJsonPath(text, where).singularSegments?.[0];
}

/** Returns the input of the first turn and the member that says it; undefined if it depends on what happens. */
function firstInputOf(
  document: HostedLoopDocument,
  hasCode: boolean,
): { readonly path: string; readonly input: Json } | undefined {
  const { id, input, next } = document;
  const isMade = next !== undefined || hasCode;
  if (isEventDriven(document)) return isMade || input === undefined ? undefined : { path: '/input', input };
  if (input !== undefined) return { path: '/input', input };
  if (hasCode) return undefined;
  if (next === undefined) return { path: '/input', input: null };
  const isKnown = pathPrefixesOf(next, '/next').every((prefix) => KNOWN_MEMBERS.has(prefix?.[0]));
  return isKnown
    ? { path: '/next', input: compileMapping(next, '/next')({ loop: id, turn: 1, input: null }) }
    : undefined;
}
