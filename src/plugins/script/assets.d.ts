// The engine's code comes as the path of a file, inside the executable too.
declare module "@jitl/quickjs-wasmfile-release-sync/wasm" {
  const path: string;
  export default path;
}
