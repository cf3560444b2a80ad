/**
 * Decides from the text of a module whether it defines loops. Importing a module runs it, so a directory of definitions
 * may also hold scripts, such as one that fills a database, only if they are recognised without running them.
 */

/** String literals that the rule needs: the member `kind` of a definition, and its values. */
const KEPT_STRINGS: ReadonlySet<string> = new Set(['kind', 'prompt', 'tool', 'composite']);

/** Characters and words after which a slash starts a regular expression, not a division. */
const BEFORE_PATTERN = /(?:^|[([{,;:=!&|?+\-*%^~<>}]|\b(?:return|typeof|case|in|of|do|else|await|yield|void|delete))$/;

/** One comment, string, template without placeholders, or the first character of anything else. */
const TOKEN =
  /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'((?:[^'\\\n]|\\[\s\S])*)'|"((?:[^"\\\n]|\\[\s\S])*)"|`|\/(?![/*])|[{}]|[^'"`/{}]+|['"]/gy;
/** A regular expression. Its length is bounded, so that a text without a closing slash costs little. */
const PATTERN_LITERAL = /\/(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,200}\]){1,500}\/[a-z]*/y;
const TEMPLATE_PART = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(`|\$\{|$)/y;

/**
 * Returns the code of a module without comments and without the contents of strings, templates and regular expressions.
 */
function codeOf(text: string): string {
  const parts: string[] = [];
  // The end of the code so far, which decides whether a slash starts a regular expression.
  let tail = '';
  const add = (part: string): void => {
    parts.push(part);
    tail = (tail + part).slice(-40);
  };
  // The depth of braces inside each placeholder of a template that is open.
  const placeholders: number[] = [];
  let position = 0;
  const skip = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = position;
    const match = pattern.exec(text);
    if (match === null) return undefined;
    position = pattern.lastIndex;
    return match[1] ?? '';
  };
  const skipTemplate = (): void => {
    if (skip(TEMPLATE_PART) === '${') placeholders.push(0);
    add(' ` ');
  };
  while (position < text.length) {
    TOKEN.lastIndex = position;
    const match = TOKEN.exec(text);
    if (match === null) break;
    const [token, single, double] = match;
    const literal = single ?? double;
    if (token === '/' && BEFORE_PATTERN.test(tail.trimEnd().slice(-12)) && skip(PATTERN_LITERAL) !== undefined)
      continue;
    position = TOKEN.lastIndex;
    if (literal !== undefined) add(KEPT_STRINGS.has(literal) ? `'${literal}'` : "''");
    else if (token === '`') skipTemplate();
    else if (token.startsWith('//') || token.startsWith('/*')) add(' ');
    else if (token === '}' && placeholders.at(-1) === 0) {
      placeholders.pop();
      skipTemplate();
    } else {
      const depth = placeholders.pop();
      if (depth !== undefined) placeholders.push(depth + (token === '{' ? 1 : token === '}' ? -1 : 0));
      add(token);
    }
  }
  return parts.join('');
}

const EXPORT = /(?:^|[\s;}])export\s*(?:\*|\{|(?:default|const|let|var|async|function|class)\b)|\bexports\b/;
const DEFINE_FUNCTION = /\bdefine(?:Loop|Agent|Plan)\b/;
const DEFINITION_OBJECT = /\bkind'?\s*:\s*'(?:prompt|tool|composite)'/;

/** The file names of modules that define loops in a form that their text does not show. */
const DEFINITION_NAME = /\.loop\.(?:mjs|js|ts)$/;

/** Why a module is not imported. */
export const NO_DEFINITION_REASON =
  'it was not imported, because it exports nothing made with defineLoop or defineAgent; if it defines loops, name it *.loop.ts, *.loop.mjs or *.loop.js';

/**
 * Returns true if a module defines loops: it exports something and either mentions `defineLoop`, `defineAgent` or
 * `definePlan` or contains a definition object, or its name ends in `.loop` and the extension. A file with a shebang
 * line is a program.
 */
export function isDefinitionModule(file: string, text: string): boolean {
  if (text.startsWith('#!')) return false;
  if (DEFINITION_NAME.test(file)) return true;
  const code = codeOf(text);
  return EXPORT.test(code) && (DEFINE_FUNCTION.test(code) || DEFINITION_OBJECT.test(code));
}
