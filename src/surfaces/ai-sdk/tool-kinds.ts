/** Looks up the kinds of an agent's tools in the registry of a host. */
import { type DefinedLoop, innerLoopOf, toolNameIn } from '../../loops/defined-loop.js';
import { type HostOption, hostOf } from './host-option.js';
import type { ToolKindLookup } from './tool-calls.js';
import type { ChatHost } from './turn-stream.js';

/**
 * Returns the lookup for the tools and handoffs of an agent. Pass it to `uiMessages` as `kindOf`, so that a loaded
 * history has the same parts as the stream had.
 *
 * @example uiMessages(envelopes, { kindOf: toolKinds(rondo, support) })
 */
export function toolKinds(host: HostOption<Pick<ChatHost, 'registry'>>, agent: string | DefinedLoop): ToolKindLookup {
  const { registry } = hostOf(host);
  const registered = typeof agent === 'string' ? registry.find(agent) : undefined;
  const definedLoop = typeof agent === 'string' ? registered?.definedLoop : agent;
  const spec = (registered ?? definedLoop)?.definition.composite?.agent;
  const idsByName = (ids: readonly string[] = []): ReadonlyMap<string, string> =>
    new Map(ids.map((id) => [toolNameIn(definedLoop, id), id]));
  const [tools, handoffs] = [idsByName(spec?.tools), idsByName(spec?.handoffs)];
  return (name) => {
    if (handoffs.has(name)) return 'handoff';
    const id = tools.get(name);
    return id === undefined ? undefined : (innerLoopOf(definedLoop, id) ?? registry.find(id))?.definition.kind;
  };
}
