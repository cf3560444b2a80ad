// The links of a document, followed within the files that its reader has.

import { posix } from 'node:path';
import { readText } from '../house/tree.js';

const withoutCode = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, '');

/** Returns the anchors of the headings of a document, as GitHub and npm derive them. */
function anchorsIn(text: string): ReadonlySet<string> {
  const headings = [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  const slugs = headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(slugs);
}

/** Returns the links of a document that do not lead to one of the files, a directory of them, or a heading. */
export function brokenLinks(page: string, text: string, files: ReadonlySet<string>): string[] {
  const links = [...withoutCode(text).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link = '']) => link);
  return links.filter((link) => {
    const [path = '', anchor] = link.split('#', 2);
    const target = path === '' ? page : posix.join(posix.dirname(page), path);
    const isFile = files.has(target);
    const isDirectory = [...files].some((file) => file.startsWith(target.endsWith('/') ? target : `${target}/`));
    if (!isFile) return !isDirectory;
    return anchor !== undefined && !anchorsIn(target === page ? text : readText(target)).has(anchor);
  });
}
