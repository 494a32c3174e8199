// stub
import { ApiError } from "../../../model/error.ts";
export function convertNpm(..._: unknown[]): Promise<void> {
  return Promise.reject(new ApiError(400, "not yet"));
}
