// Reads the files of a form (multipart/form-data), as browsers and curl send them; knows no program.
import { ApiError } from "../../model/error.ts";
import { unpacked } from "./archive.ts";
import { type SourceTree, TREE_LIMITS, TreeBuilder, type TreeLimits } from "./tree.ts";

/** Whether a body of this type is a form. */
export const isForm = (contentType: string): boolean =>
  /^multipart\/form-data\b/i.test(contentType);

/** The files of a form by their names, which may have folders; those of the archive when it is the only file. Throws a 400 or 413. */
export async function filesOfForm(
  bytes: Uint8Array,
  contentType: string,
  limits: TreeLimits = TREE_LIMITS,
): Promise<SourceTree> {
  const files = new TreeBuilder(limits);
  const values: unknown[] = [...(await formOf(bytes, contentType)).values()];
  const [first] = values;
  if (values.length === 1 && first instanceof File) {
    const archive = unpacked(new Uint8Array(await first.arrayBuffer()), limits);
    if (archive !== null) return archive;
  }
  for (const value of values) {
    if (!(value instanceof File))
      throw new ApiError(400, "the form has a field without a file name: send files only");
    const path = files.enter(value.name);
    if (value.size > files.left) throw files.tooLarge();
    files.add(path, new Uint8Array(await value.arrayBuffer()));
  }
  return files.finish();
}

async function formOf(bytes: Uint8Array, contentType: string): Promise<FormData> {
  try {
    const body = new Response(new Uint8Array(bytes), { headers: { "content-type": contentType } });
    return await body.formData();
  } catch (error) {
    throw new ApiError(400, "the body is no valid form (multipart/form-data)", { cause: error });
  }
}
