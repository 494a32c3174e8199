// The import yields the path of the engine's code, inside of the executable too.
declare module "@jitl/quickjs-wasmfile-release-sync/wasm" {
  const path: string;
  export default path;
}
