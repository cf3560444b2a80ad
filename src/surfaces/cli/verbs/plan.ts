/** `rondo plan convert`: converts a workflow or a definition between TOML and JSON. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type TrustPredicate, trustPredicateOf } from '../../authority.js';
import { type DefinitionFormat, loadSettings, readDefinitionFile, renderDefinition } from '../../compose.js';
import { existingFileError, writeNewOutput } from '../../output-path.js';
import { UsageError } from '../../settings.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo plan`. */
export const plan: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const [command, file] = [String(args[0]), String(args[1])];
  if (command !== 'convert')
    throw new UsageError(`There is no command "plan ${command}"; the only one is: rondo plan convert <file>`);
  const settings = await loadSettings(settingsInput);
  const source = resolve(settings.cwd, file);
  if (!/\.(?:json|toml)$/.test(source)) throw new UsageError(`${file} must end in .toml or .json.`);
  if (!existsSync(source)) throw new UsageError(`There is no file ${file}.`);
  const format = formatOf(textOption(options.to), source);
  const text = await renderDefinition(await readDefinitionFile(source, settings), format);
  const out = textOption(options.out);
  if (out !== undefined) writeNewFile(resolve(settings.cwd, out), text, out, trustPredicateOf(settings.authority));
  if (json) await terminal.printJson({ file: source, format, ...(out === undefined ? { text } : { out }) });
  else if (out === undefined) await terminal.print(text);
  else terminal.printToStderr(`Wrote ${out}.`);
  return exitCodes.ok;
};

function formatOf(format: string | undefined, source: string): DefinitionFormat {
  if (format === undefined) return source.endsWith('.toml') ? 'json' : 'toml';
  if (format === 'toml' || format === 'json') return format;
  throw new UsageError(`--to must be toml or json, not "${format}".`);
}

/** Writes a file. Throws a UsageError if it exists: a conversion never overwrites. */
function writeNewFile(file: string, text: string, name: string, trusts: TrustPredicate): void {
  try {
    writeNewOutput(file, text, trusts);
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw existingFileError(name);
    throw new UsageError(`${name} cannot be written: ${code ?? String(thrown)}.`);
  }
}
