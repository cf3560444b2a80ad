/** `rondo init`: writes a small TypeScript project. It never overwrites a file. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { authorityOf, trustPredicateOf } from '../../authority.js';
import { readTrustFile } from '../../compose.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';
import { type ProjectFile, writeProject } from '../write-project.js';

/** Names in the template that differ from those in a project, because npm does not publish such files unchanged. */
const RENAMED_FILES: ReadonlyMap<string, string> = new Map([
  ['gitignore', '.gitignore'],
  ['env.example', '.env.example'],
]);

/** The name of the project in the template. */
const TEMPLATE_NAME = 'my-agents';

/** What to do if files of the template exist. */
const CONFLICT_ADVICE = [
  'For a new project, choose an empty directory: rondo init DIR',
  'To add Rondo to this project:',
  '  npm install rondo zod',
  '  npm install --save-dev tsx    # for loops in TypeScript; set "type": "module" in package.json',
  '  mkdir -p loops                # then write a definition, such as loops/greet.ts of a new project',
  '  npx rondo trust .             # lets rondo run the code of this project',
  '  npx rondo list',
];

/** Handles `rondo init`. */
export const init: VerbHandler = async ({ args, settingsInput, terminal, json }) => {
  const { cwd } = settingsInput;
  const directory = resolve(cwd, textOption(args[0]) ?? '.');
  const files = await projectFiles(packageNameOf(directory));
  const trusts = trustPredicateOf(authorityOf(settingsInput, await readTrustFile(settingsInput)));
  const conflicts = await writeProject(directory, files, trusts);
  const created = conflicts.length === 0 ? files.map(({ path }) => path) : [];
  const next = nextCommands(relative(cwd, directory));
  if (json) await terminal.printJson({ ok: conflicts.length === 0, directory, created, conflicts, next });
  if (conflicts.length > 0) {
    terminal.printToStderr(`Nothing was written, because these files exist in ${sanitizeText(directory)}:`);
    for (const path of conflicts) terminal.printToStderr(`  ${path}`);
    for (const line of CONFLICT_ADVICE) terminal.printToStderr(line);
    return exitCodes.failed;
  }
  terminal.printToStderr(`Created ${created.length} files in ${sanitizeText(directory)}. Next:`);
  for (const command of next) terminal.printToStderr(`  ${sanitizeText(command)}`);
  return exitCodes.ok;
};

function nextCommands(path: string): readonly string[] {
  return [
    ...(path === '' ? [] : [`cd ${/^[\w./-]+$/.test(path) ? path : JSON.stringify(path)}`]),
    'npm install',
    'npm test',
    'npx rondo trust .',
    'npx rondo run greet --input \'{"name": "Ada"}\'',
    'npx rondo run support --input \'{"prompt": "My lamp broke."}\'',
    'npx rondo dev',
  ];
}

/** Returns a valid package name for the directory. */
function packageNameOf(directory: string): string {
  const name = basename(directory)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+|[._-]+$/g, '');
  return name === '' ? TEMPLATE_NAME : name.slice(0, 200);
}

async function projectFiles(packageName: string): Promise<readonly ProjectFile[]> {
  const template = templateDirectory();
  const entries = await readdir(template, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(template, join(entry.parentPath, entry.name)).replaceAll('\\', '/'));
  return Promise.all(
    paths.sort().map(async (path) => {
      const text = await readFile(join(template, path), 'utf8');
      return { path: RENAMED_FILES.get(path) ?? path, text: text.replaceAll(TEMPLATE_NAME, packageName) };
    }),
  );
}

/** Returns the template of the package, wherever the bundler has put this module. */
function templateDirectory(): string {
  for (let directory = dirname(fileURLToPath(import.meta.url)); ; directory = dirname(directory)) {
    const template = join(directory, 'templates', 'init');
    if (existsSync(join(template, 'package.json'))) return template;
    if (dirname(directory) === directory) throw new Error('the package has no template of a project');
  }
}
