// The import table: which folder may import which. It is checked over plain {file, imports} records, so that a test can
// pass a forbidden import. A ring is the first folder below src/; an adapter is the first segment below src/adapters/.

import { builtinModules } from 'node:module';
import { posix } from 'node:path';
import { COMPUTED, type FileImports, type Import } from './imports.js';

/** The runtime dependencies of the root package and of the web workspace. */
export interface Declared {
  readonly root: readonly string[];
  readonly web: readonly string[];
}

interface Ring {
  readonly rings: readonly string[];
  readonly typesFrom?: readonly string[];
  readonly packages: 'none' | 'declared';
  readonly builtins: 'all' | 'inward' | readonly string[];
}

const table: Readonly<Record<string, Ring>> = {
  protocol: { rings: [], packages: 'none', builtins: [] },
  // `net` only parses addresses and subnets; `fs` only serves announcements between processes.
  base: { rings: ['protocol'], packages: 'none', builtins: ['crypto', 'fs', 'net'] },
  json: { rings: ['base', 'protocol'], packages: 'declared', builtins: ['crypto', 'module'] },
  journal: { rings: ['json', 'base', 'protocol'], packages: 'none', builtins: ['crypto'] },
  kernel: { rings: ['journal', 'json', 'base', 'protocol'], packages: 'none', builtins: [] },
  views: { rings: ['journal', 'json', 'base', 'protocol'], packages: 'none', builtins: ['crypto'] },
  policy: { rings: ['journal', 'json', 'base', 'protocol'], packages: 'none', builtins: [] },
  loops: {
    rings: ['kernel', 'views', 'policy', 'journal', 'json', 'base', 'protocol'],
    packages: 'declared',
    builtins: 'inward',
  },
  layers: {
    rings: ['kernel', 'views', 'policy', 'journal', 'json', 'base', 'protocol'],
    packages: 'declared',
    builtins: 'inward',
  },
  host: {
    rings: ['kernel', 'loops', 'layers', 'views', 'policy', 'journal', 'json', 'base', 'protocol'],
    packages: 'declared',
    builtins: 'inward',
  },
  adapters: {
    rings: ['journal', 'json', 'base', 'protocol'],
    typesFrom: ['loops', 'host'],
    packages: 'declared',
    builtins: 'all',
  },
  conformance: {
    rings: ['host', 'loops', 'journal', 'json', 'base', 'protocol'],
    packages: 'declared',
    builtins: 'all',
  },
  surfaces: {
    rings: ['host', 'loops', 'views', 'conformance', 'journal', 'json', 'base', 'protocol'],
    packages: 'declared',
    builtins: 'all',
  },
  testing: {
    rings: ['conformance', 'host', 'loops', 'layers', 'views', 'kernel', 'journal', 'json', 'base', 'protocol'],
    packages: 'declared',
    builtins: 'all',
  },
};

/** Node modules that reach outside of the process. */
const outward = new Set(
  'child_process cluster dgram dns fs http http2 https net repl sqlite tls vm worker_threads'.split(' '),
);

/** Returns the imports that the table forbids, with the reason. */
export function importFaults(files: readonly FileImports[], declared: Declared): string[] {
  return files.flatMap(({ file, imports }) =>
    imports.flatMap((item) => {
      const reason = refusal(file, item, declared);
      return reason === undefined ? [] : [`${file} imports '${item.specifier}': ${reason}`];
    }),
  );
}

function refusal(file: string, item: Import, declared: Declared): string | undefined {
  if (file.startsWith('web/')) return refusalInWeb(file, item.specifier, declared.web);
  if (item.specifier.startsWith('.')) return refusalOfFile(file, item);
  return refusalOfPackage(file, item.specifier, declared.root);
}

/** The entry points of the package that export from every ring. */
function isEntryPoint(file: string): boolean {
  return file === 'src/index.ts' || file === 'src/host-entry.ts';
}

function refusalOfFile(file: string, item: Import): string | undefined {
  const target = targetOf(file, item.specifier);
  if (!target.startsWith('src/')) return 'a source file may not import anything outside of src/';
  if (isEntryPoint(file)) return undefined;
  const [from, to] = [ringOf(file), ringOf(target)];
  const ring = table[from];
  if (!ring) return `'${from}' is not in the import table`;
  if (from === 'adapters' && to === 'adapters') {
    return adapterOf(file) === adapterOf(target) ? undefined : 'an adapter may not import another adapter';
  }
  if (from === to || ring.rings.includes(to)) return undefined;
  if (to === 'adapters') return refusalOfAdapter(file, target);
  if (ring.typesFrom?.includes(to)) return item.typeOnly ? undefined : `${from} may import only types from ${to}`;
  return `${from} may not import ${to}`;
}

function refusalOfAdapter(file: string, target: string): string | undefined {
  if (ringOf(file) === 'testing' && /^src\/adapters\/models\/script(?:ed)?\.ts$/.test(target)) return undefined;
  if (ringOf(file) === 'testing' || ringOf(file) === 'conformance')
    return /^(?:memory|system)$/.test(adapterOf(target))
      ? undefined
      : `${ringOf(file)} may import only the memory and system adapters; testing also the scripted models`;
  if (/^src\/surfaces\/compose(?:\.ts$|\/)/.test(file)) return undefined;
  return ringOf(file) === 'surfaces'
    ? 'only surfaces/compose.ts and the files in surfaces/compose/ import adapters'
    : `${ringOf(file)} may not import adapters`;
}

function refusalOfPackage(file: string, specifier: string, declared: readonly string[]): string | undefined {
  const ring = isEntryPoint(file) ? table.surfaces : table[ringOf(file)];
  if (!ring) return `'${ringOf(file)}' is not in the import table`;
  if (specifier === COMPUTED)
    return ring.builtins === 'all' ? undefined : `${ringOf(file)} must import by a literal name`;
  if (specifier.startsWith('node:')) return refusalOfBuiltin(file, specifier, ring.builtins);
  if (builtinModules.includes(specifier)) return `write 'node:${specifier}'`;
  const name = packageOf(specifier);
  if (name === 'rondo') return 'inside src, import by relative path';
  if (ring.packages === 'none') return `${ringOf(file)} imports no package`;
  return declared.includes(name) ? undefined : `package.json does not declare '${name}' for run time`;
}

function refusalOfBuiltin(file: string, specifier: string, allowed: Ring['builtins']): string | undefined {
  const name = specifier.slice('node:'.length).split('/')[0] ?? '';
  if (name === 'vm') return 'node:vm is not a sandbox';
  if (allowed === 'all') return undefined;
  if (allowed === 'inward') {
    return outward.has(name) ? 'only adapters and surfaces use the network, the disk and processes' : undefined;
  }
  return allowed.includes(name)
    ? undefined
    : `${ringOf(file)} may import only these Node modules: [${allowed.join(', ')}]`;
}

function refusalInWeb(file: string, specifier: string, declared: readonly string[]): string | undefined {
  if (specifier === COMPUTED || specifier === 'rondo/protocol') return undefined;
  if (specifier.startsWith('.')) {
    const target = targetOf(file, specifier);
    return /^(web|src\/protocol)\//.test(target) ? undefined : 'web may import only protocol';
  }
  const name = packageOf(specifier);
  if (name === 'rondo') return 'web may import only rondo/protocol';
  return declared.includes(name) ? undefined : `web/package.json does not declare '${name}'`;
}

function targetOf(file: string, specifier: string): string {
  return posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts');
}

function ringOf(file: string): string {
  return file.split('/')[1] ?? '';
}

function adapterOf(file: string): string {
  return (file.split('/')[2] ?? '').replace(/\.ts$/, '');
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
