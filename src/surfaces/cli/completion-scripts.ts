/**
 * The completion scripts of the shells, generated from the declarations of the verbs. Ids are offered as data: no
 * script evaluates them.
 */
import { PERMISSION_FLAGS, SETTING_FLAGS } from './setting-flags.js';
import type { Verb } from './verb.js';

/** What the argument of a verb names. */
export type IdKind = 'loop' | 'turn' | 'session' | 'approval';

const ID_KINDS: ReadonlyMap<string, IdKind> = new Map([
  ['loop', 'loop'],
  ['agent', 'loop'],
  ['turn', 'turn'],
  ['effect', 'turn'],
  ['session', 'session'],
  ['approval', 'approval'],
]);

/** Returns what the first argument of a verb names; undefined if it is no id. */
export function idKindOf({ arguments: text }: Pick<Verb, 'arguments'>): IdKind | undefined {
  return ID_KINDS.get(/^[<[](\w+)/.exec(text)?.[1] ?? '');
}

interface Flag {
  readonly name: string;
  readonly help: string;
  readonly hasValue: boolean;
}

function flagsOf(options: readonly (readonly [flags: string, help: string, ...rest: readonly unknown[]])[]): Flag[] {
  return options.map(([flags, help]) => ({
    name: flags.split(' ', 1)[0] ?? flags,
    help,
    hasValue: flags.includes('<'),
  }));
}

const commonFlags: readonly Flag[] = [
  ...flagsOf(SETTING_FLAGS),
  ...flagsOf(PERMISSION_FLAGS),
  { name: '--help', help: 'show the help of the verb', hasValue: false },
];

const allFlagsOf = ({ options }: Verb): readonly Flag[] => [...flagsOf(options), ...commonFlags];
const namesOf = (flags: readonly Flag[]): string => flags.map(({ name }) => name).join(' ');
const verbNames = (verbs: readonly Verb[]): string => [...verbs.map(({ name }) => name), 'help'].join(' ');

/** Returns the names of the verbs whose first argument is an id, in the pattern syntax of bash and zsh. */
const idVerbs = (verbs: readonly Verb[]): string =>
  verbs
    .filter((verb) => idKindOf(verb) !== undefined)
    .map(({ name }) => name)
    .join('|');

/** Returns the flags that have a value, in the pattern syntax of bash and zsh. */
function valueFlags(verbs: readonly Verb[]): string {
  const names = verbs.flatMap((verb) => allFlagsOf(verb).filter(({ hasValue }) => hasValue));
  return [...new Set(names.map(({ name }) => name))].join('|');
}

/** Quotes a text for a POSIX shell. */
const shellQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
/** Quotes a text for fish, in which a backslash escapes itself and the quote. */
const fishQuote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function bashScript(verbs: readonly Verb[]): string {
  const cases = verbs.map((verb) => `    ${verb.name}) flags=${shellQuote(namesOf(allFlagsOf(verb)))} ;;`);
  return `# bash completion for rondo
_rondo() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} verb= flags= word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
    ${valueFlags(verbs)}) ((i++)) ;;
    -*) ;;
    *) verb=\${COMP_WORDS[i]}; break ;;
    esac
  done
  case $prev in
  ${valueFlags(verbs)}) return ;;
  esac
  case $verb in
    '') if [[ $cur == -* ]]; then flags=${shellQuote(namesOf(commonFlags))}; else flags=${shellQuote(verbNames(verbs))}; fi ;;
    help) flags=${shellQuote(verbNames(verbs))} ;;
${cases.join('\n')}
  esac
  if [[ -z $verb || $verb == help || $cur == -* ]]; then
    for word in $flags; do [[ $word == "$cur"* ]] && COMPREPLY+=("$word"); done
    return
  fi
  case $verb in
  completion) for word in bash zsh fish; do [[ $word == "$cur"* ]] && COMPREPLY+=("$word"); done ;;
  ${idVerbs(verbs)})
    while IFS= read -r word; do
      [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done < <(rondo completion ids "$verb" 2>/dev/null) ;;
  esac
}
complete -o default -F _rondo rondo
`;
}

function zshScript(verbs: readonly Verb[]): string {
  const item = (name: string, help: string): string => shellQuote(`${name}:${help}`);
  const descriptions = verbs.map(({ name, description }) => `    ${item(name, description)}`);
  const cases = verbs.map((verb) => {
    const flags = allFlagsOf(verb).map(({ name, help }) => item(name, help));
    return `    ${verb.name}) flags=(${flags.join(' ')}) ;;`;
  });
  return `#compdef rondo
# zsh completion for rondo
_rondo() {
  local verb= i
  local -a verbs flags ids
  verbs=(
${descriptions.join('\n')}
    ${item('help', 'Show the help of a verb.')}
  )
  for ((i = 2; i < CURRENT; i++)); do
    case \${words[i]} in
    ${valueFlags(verbs)}) ((i++)) ;;
    -*) ;;
    *) verb=\${words[i]}; break ;;
    esac
  done
  case \${words[CURRENT-1]} in
  ${valueFlags(verbs)}) _files; return ;;
  esac
  if [[ -z $verb || $verb == help ]]; then
    _describe verb verbs
    return
  fi
  case $verb in
${cases.join('\n')}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    _describe flag flags
    return
  fi
  case $verb in
  completion) compadd -- bash zsh fish ;;
  ${idVerbs(verbs)})
    ids=("\${(@f)$(rondo completion ids $verb 2>/dev/null)}")
    compadd -- $ids
    _files ;;
  *) _files ;;
  esac
}
if [[ $funcstack[1] == _rondo ]]; then _rondo "$@"; else compdef _rondo rondo; fi
`;
}

function fishScript(verbs: readonly Verb[]): string {
  const none = '-n __fish_use_subcommand';
  const lines = verbs.flatMap((verb) => {
    const within = `-n ${fishQuote(`__fish_seen_subcommand_from ${verb.name}`)}`;
    const flags = allFlagsOf(verb).map(
      ({ name, help, hasValue }) =>
        `complete -c rondo ${within} -l ${name.slice(2)} -d ${fishQuote(help)}${hasValue ? ' -r' : ''}`,
    );
    const ids =
      idKindOf(verb) === undefined
        ? []
        : [`complete -c rondo ${within} -a '(rondo completion ids ${verb.name} 2>/dev/null)'`];
    return [`complete -c rondo ${none} -f -a ${verb.name} -d ${fishQuote(verb.description)}`, ...flags, ...ids];
  });
  const shells = "complete -c rondo -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'";
  const help = `complete -c rondo -n '__fish_seen_subcommand_from help' -f -a ${fishQuote(verbNames(verbs))}`;
  return ['# fish completion for rondo', ...lines, shells, help, ''].join('\n');
}

/** The function that returns the script of each shell. */
export const completionScripts: ReadonlyMap<string, (verbs: readonly Verb[]) => string> = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
]);
