// stub
import { ApiError } from "../../../model/error.ts";
export function convertCaddy(..._: unknown[]): void {
  throw new ApiError(400, "not yet");
}
