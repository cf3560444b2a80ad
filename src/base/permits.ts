/**
 * Permits: the operator's authorization for definition files that are not trusted. They list which environment
 * variables may be sent to which hosts, and which non-public hosts may be reached. By default, the API keys of known
 * providers may be sent to the hosts of these providers, and nothing else is permitted.
 */
import { LoopError } from './errors.js';
import { ipVersion, isPublicAddress } from './ip-address.js';

/** The lists of an operator. Hosts are written as `api.example.com`, `127.0.0.1:8080` or `http://lab.internal:8080`. */
export interface PermitLists {
  /** Environment variables, and the hosts that each may be sent to. */
  readonly send: ReadonlyMap<string, readonly string[]>;
  /** Non-public hosts that may be reached. The hosts in `send` may be reached too. */
  readonly destinations: readonly string[];
}

/** The content of an operator's trust.toml. */
export interface TrustSettings extends PermitLists {
  /** Absolute paths of the directories whose code may run. */
  readonly directories: readonly string[];
}

/** Decides what an untrusted definition file may send and reach. */
export interface Permits {
  /** True if the value of this variable may be sent to this URL. */
  canSend(variable: string, url: URL): boolean;
  /** True if this URL may be reached even if its address is not public. */
  canReach(url: URL): boolean;
}

type Environment = { readonly [name: string]: string | undefined };

/** API key variables of providers, the host of each, and the variable with which the operator sets another base URL. */
const KNOWN_PROVIDERS: readonly (readonly [key: string, host: string, baseUrlVariable?: string])[] = [
  ['OPENAI_API_KEY', 'api.openai.com', 'OPENAI_BASE_URL'],
  ['ANTHROPIC_API_KEY', 'api.anthropic.com', 'ANTHROPIC_BASE_URL'],
  ['CEREBRAS_API_KEY', 'api.cerebras.ai'],
  ['DEEPSEEK_API_KEY', 'api.deepseek.com'],
  ['FIREWORKS_API_KEY', 'api.fireworks.ai'],
  ['GEMINI_API_KEY', 'generativelanguage.googleapis.com'],
  ['GROQ_API_KEY', 'api.groq.com'],
  ['MISTRAL_API_KEY', 'api.mistral.ai'],
  ['OPENROUTER_API_KEY', 'openrouter.ai'],
  ['TOGETHER_API_KEY', 'api.together.xyz'],
  ['XAI_API_KEY', 'api.x.ai'],
];

const NO_PERMITS: PermitLists = { send: new Map(), destinations: [] };

/**
 * Returns the permits of the operator's lists and environment. Without lists, only the keys of known providers are
 * permitted.
 *
 * @example
 * import { permitsOf } from 'rondo/host';
 *
 * const permits = permitsOf(process.env, {
 *   send: new Map([['SHOP_TOKEN', ['api.shop.example']]]),
 *   destinations: ['127.0.0.1:8080'],
 * });
 * permits.canSend('SHOP_TOKEN', new URL('https://api.shop.example/orders')); // true
 */
export function permitsOf(env: Environment, { send, destinations }: PermitLists = NO_PERMITS): Permits {
  const reachable = [...destinations, ...[...send.values()].flat()];
  return {
    canSend: (variable, url) =>
      knownHosts(variable, env).some((host) => matchesOrigin(host, url)) ||
      (send.get(variable) ?? []).some(
        (host) =>
          matchesOrigin(host, url) &&
          /* guard: clear-text-needs-explicit-scheme */ (host.includes('://') || isConfidential(url)),
      ),
    canReach: (url) => reachable.some((host) => matchesOrigin(host, url)),
  };
}

function knownHosts(variable: string, env: Environment): readonly string[] {
  const provider = KNOWN_PROVIDERS.find(([key]) => key === variable);
  if (provider === undefined) return [];
  const [, host, baseUrlVariable = ''] = provider;
  const baseUrl = env[baseUrlVariable] ?? '';
  return [`https://${host}`, ...(URL.canParse(baseUrl) ? [new URL(baseUrl).origin] : [])];
}

/**
 * True if a list entry matches the host and the port of this URL, and its scheme if the entry has one. An entry without
 * a port matches the default port of the scheme.
 */
function matchesOrigin(entry: string, url: URL): boolean {
  const text = entry.includes('://') ? entry : `${url.protocol}//${entry}`;
  return URL.canParse(text) && new URL(text).origin === url.origin;
}

/** True if a host entry, or `*.HOST` or `*.HOST:PORT` for the names below a host, matches a URL. */
export function matchesDestination(entry: string, url: URL): boolean {
  if (!entry.startsWith('*.')) return matchesOrigin(entry, url);
  const [, parent = '', port = ''] = /^\*(\.[^:]+)(:\d+)?$/.exec(entry.toLowerCase()) ?? [];
  const isBelow = parent !== '' && url.hostname.endsWith(parent) && url.hostname.length > parent.length;
  // The port must be that of the entry, or else the default one of the scheme.
  return isBelow && matchesOrigin(`${url.hostname}${port}`, url);
}

/** Throws TOOL_NOT_ADMITTED if a grant lists destinations and this URL is none of them. */
export function assertDestination(destinations: readonly string[] | undefined, url: URL): void {
  if (destinations === undefined || destinations.some((entry) => matchesDestination(entry, url))) return;
  throw new LoopError('TOOL_NOT_ADMITTED', `${url.host} is not a destination of the grant.`, { host: url.host });
}

/** True if the traffic is encrypted or does not leave this machine. */
function isConfidential(url: URL): boolean {
  return url.protocol === 'https:' || isLoopback(url);
}

function isLoopback({ hostname }: URL): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);
}

const HOST_ENTRY_PATTERN = /^(?:https?:\/\/)?(?:\[[0-9a-f:.]+\]|[^\s/\\@:?#[\]*]+)(?::\d{1,5})?$/i;

/** Returns the problem of a host entry, as the end of a sentence; undefined if it is valid. */
export function findHostProblem(text: string): string | undefined {
  const isHost = HOST_ENTRY_PATTERN.test(text) && URL.canParse(text.includes('://') ? text : `https://${text}`);
  return isHost ? undefined : 'must be a host such as api.example.com, 127.0.0.1:8080 or http://lab.internal:8080';
}

/** Returns the problem of an environment variable's name, as the end of a sentence; undefined if it is valid. */
export function findVariableProblem(text: string): string | undefined {
  return /^[A-Za-z_]\w{0,127}$/.test(text) ? undefined : 'must be the name of an environment variable';
}

/** Returns the message that a variable may not be sent to a URL, and how the operator permits it. */
export function sendRefusal(variable: string, url: URL): string {
  const host = isConfidential(url) ? url.host : url.origin;
  return `sends the environment variable ${variable} to ${host}, and you have not allowed that. If you want it, run: rondo trust --send ${variable}=${host} (or add ${variable} = ["${host}"] under [send] in your trust.toml)`;
}

/** Returns the message that a URL may not be reached, and how the operator permits it. */
export function reachRefusal({ host }: URL): string {
  return `${host} is not on the public internet, and the file that names it is not trusted. If you want it to be reached, run: rondo trust --reach ${host} (or add "${host}" to destinations in your trust.toml)`;
}

/**
 * True if a URL is non-public without a lookup: its host is a non-public address, `localhost` or a name below
 * `localhost`.
 */
export function isKnownPrivateHost({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return ipVersion(host) === 0 ? /(?:^|\.)localhost$/.test(host) : !isPublicAddress(host);
}

/** Returns the advice how to trust a directory. Without one, the advice has a placeholder. */
export function trustAdvice(directory: string | undefined): string {
  const argument = directory ?? 'DIR';
  return `If you trust it, run: rondo trust ${argument} (or start with --trust ${argument}).`;
}
