// Files that are embedded in the executable, by their paths in it.

// Written by scripts/packed-files.ts; absent until then.
declare module "*/dist/packed/reference.js" {
  export const path: string;
}

declare module "*/dist/packed/nodemailer.js" {
  export const packed: Uint8Array<ArrayBuffer>;
}

declare module "*/dist/packed/quickjs.js" {
  export const packed: Uint8Array<ArrayBuffer>;
}

// Written by scripts/build-ui.ts; absent until then.
declare module "*/dist/ui/embedded.js" {
  export const files: import("./ui.ts").UiFiles;
}
