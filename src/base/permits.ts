/**
 * What the operator allows to files that are not trusted: which environment variables may be sent to which hosts, and which
 * hosts that are not public may be reached. Without a word from the operator, the keys of known providers go to the hosts of
 * those providers, and nothing else is sent anywhere.
 */
import { ipVersion, isPublicAddress } from './ip-address.js';

/** The operator's lists, as written: hosts as in `api.example.com`, `127.0.0.1:8080` or `http://lab.internal:8080`. */
export interface PermitLists {
  readonly send: ReadonlyMap<string, readonly string[]>;
  readonly destinations: readonly string[];
}

export interface Permits {
  /** True if the value of this variable may be sent to this URL. */
  canSend(variable: string, url: URL): boolean;
  /** True if this URL may be reached whatever its address is. */
  canReach(url: URL): boolean;
}

type Environment = { readonly [name: string]: string | undefined };

/** Keys of providers, the hosts that they are for, and the variable with which the operator names another host. */
const KNOWN_PROVIDERS: readonly (readonly [key: string, host: string, base?: string])[] = [
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

/** The permits of the operator's lists and environment; without lists, only those of the known providers. */
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
  const known = KNOWN_PROVIDERS.find(([key]) => key === variable);
  if (known === undefined) return [];
  const [, host, base = ''] = known;
  const other = env[base] ?? '';
  return [`https://${host}`, ...(URL.canParse(other) ? [new URL(other).origin] : [])];
}

/** True if an entry of a list means the host and the port of this URL; an entry without a port means the usual one. */
function matchesOrigin(entry: string, url: URL): boolean {
  const text = entry.includes('://') ? entry : `${url.protocol}//${entry}`;
  return URL.canParse(text) && new URL(text).origin === url.origin;
}

/** True if nobody on the way can read what is sent: encrypted, or never leaving this machine. */
function isConfidential(url: URL): boolean {
  return url.protocol === 'https:' || isLoopback(url);
}

function isLoopback({ hostname }: URL): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);
}

const HOST_ENTRY_PATTERN = /^(?:https?:\/\/)?(?:\[[0-9a-f:.]+\]|[^\s/\\@:?#[\]*]+)(?::\d{1,5})?$/i;

/** Why a text is no entry of a list of hosts; undefined if it is one. */
export function findHostProblem(text: string): string | undefined {
  const isHost = HOST_ENTRY_PATTERN.test(text) && URL.canParse(text.includes('://') ? text : `https://${text}`);
  return isHost ? undefined : 'must be a host such as api.example.com, 127.0.0.1:8080 or http://lab.internal:8080';
}

/** Why a text is no name of an environment variable; undefined if it is one. */
export function findVariableProblem(text: string): string | undefined {
  return /^[A-Za-z_]\w{0,127}$/.test(text) ? undefined : 'must be the name of an environment variable';
}

/** Says that a variable may not be sent to a URL, and how the operator allows it. */
export function sendRefusal(variable: string, url: URL): string {
  const host = isConfidential(url) ? url.host : url.origin;
  return `sends the environment variable ${variable} to ${host}, and you have not allowed that. If you want it, run: rondo trust --send ${variable}=${host} (or add ${variable} = ["${host}"] under [send] in your trust.toml)`;
}

/** Says that a URL may not be reached, and how the operator allows it. */
export function reachRefusal({ host }: URL): string {
  return `${host} is not on the public internet, and the file that names it is not trusted. If you want it to be reached, run: rondo trust --reach ${host} (or add "${host}" to destinations in your trust.toml)`;
}

/** True if the text of a URL alone tells that it is not public: an address that is not, or the name of this machine. */
export function isKnownPrivateHost({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return ipVersion(host) === 0 ? /(?:^|\.)localhost$/.test(host) : !isPublicAddress(host);
}

/** Tells how the operator trusts a directory. */
export function trustAdvice(directory: string | undefined): string {
  const named = directory ?? 'DIR';
  return `If you trust it, run: rondo trust ${named} (or start with --trust ${named}).`;
}
