/** Composes the port that reads the files of `contextSkills`. */
import type { ContextFiles } from '../../loops/context/context-source.js';
import type { Registry } from '../../loops/registry.js';

/**
 * Returns the port for a base directory, which contains the folder `skills`, and the definitions of a registry. The
 * adapter is loaded when a loop first reads context: few do.
 */
export function createContextFiles(directory: string, registry: Registry): ContextFiles {
  const definitionDirectories = (): readonly (string | undefined)[] =>
    registry.list().map(({ origin }) => origin.directory);
  return {
    read: async (reference, origin, maxBytes) => {
      const { contextFilesIn } = await import('../../adapters/files/context-files.js');
      return contextFilesIn({ directory, definitionDirectories }).read(reference, origin, maxBytes);
    },
  };
}
