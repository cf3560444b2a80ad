export function protectStore(_path: string): void {}
