/** Watches the files of a project that definitions depend on. */
import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { basename, dirname, extname, join, sep } from 'node:path';

/** Changes within this period are reported together, because editors write a file in several steps. */
const DEBOUNCE_MS = 150;
/** The maximum number of watched directories. A system allows a process only a limited number. */
const MAX_DIRECTORIES = 500;

const CODE_EXTENSIONS: ReadonlySet<string> = new Set(['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs']);
const PROJECT_FILES: ReadonlySet<string> = new Set(['rondo.toml', 'package.json', 'tsconfig.json', '.env']);

/** The directories of a project. */
export interface WatchedProject {
  readonly projectDirectory: string;
  readonly loopsDirectory: string;
  readonly dataDirectory: string;
  /** The config file, if it has another name or place than `rondo.toml` in the project. */
  readonly configFile?: string | undefined;
}

/** Watches until it is closed. Code is watched in the whole project, because definitions import it. */
export class ProjectWatcher {
  private readonly project: WatchedProject;
  private readonly onChange: (files: readonly string[]) => void;
  private readonly watchers = new Map<string, FSWatcher>();
  private readonly changed = new Set<string>();
  private timer: NodeJS.Timeout | undefined;

  constructor(project: WatchedProject, onChange: (files: readonly string[]) => void) {
    this.project = project;
    this.onChange = onChange;
    this.watchDirectories();
  }

  /** Stops watching. Changes that were not reported yet are dropped. */
  close(): void {
    clearTimeout(this.timer);
    for (const watcher of this.watchers.values()) watcher.close();
    this.watchers.clear();
  }

  private watchDirectories(): void {
    const { projectDirectory, loopsDirectory, configFile } = this.project;
    const roots = [loopsDirectory, ...(configFile === undefined ? [] : [dirname(configFile)]), projectDirectory];
    for (const directory of directoriesBelow(roots, this.project.dataDirectory)) {
      if (this.watchers.has(directory)) continue;
      try {
        const watcher = watch(directory, (_event, name) => this.note(directory, name));
        watcher.on('error', () => this.forget(directory));
        this.watchers.set(directory, watcher);
      } catch {
        // The directory has been removed, or the system allows no more watchers.
      }
    }
  }

  private forget(directory: string): void {
    this.watchers.get(directory)?.close();
    this.watchers.delete(directory);
  }

  private note(directory: string, name: string | null): void {
    const file = name === null ? directory : join(directory, name);
    if (name !== null && !this.isRelevant(file)) return;
    this.changed.add(file);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const files = [...this.changed].sort();
      this.changed.clear();
      // A new directory may hold files that definitions import.
      this.watchDirectories();
      this.onChange(files);
    }, DEBOUNCE_MS);
  }

  private isRelevant(file: string): boolean {
    const { projectDirectory, loopsDirectory, configFile } = this.project;
    const name = basename(file);
    const extension = extname(name);
    if (file === configFile || CODE_EXTENSIONS.has(extension)) return true;
    if (dirname(file) === loopsDirectory) return extension !== '' || !name.startsWith('.');
    // A name without an extension may be a new directory.
    return (dirname(file) === projectDirectory && PROJECT_FILES.has(name)) || extension === '';
  }
}

/** Returns the directories and those below them, without packages, hidden directories and the data directory. */
function directoriesBelow(roots: readonly string[], dataDirectory: string): readonly string[] {
  const found = new Set<string>(roots);
  // A set that grows while it is iterated yields the added members too.
  for (const directory of found) {
    for (const name of subdirectoriesOf(directory)) {
      const path = join(directory, name);
      const isData = path === dataDirectory || path.startsWith(dataDirectory + sep);
      if (found.size < MAX_DIRECTORIES && !name.startsWith('.') && name !== 'node_modules' && !isData) found.add(path);
    }
  }
  return [...found];
}

function subdirectoriesOf(directory: string): readonly string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}
