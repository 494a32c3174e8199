// Brings a field of a schema form into view and focuses it; knows no field.

/** The first field at one of the paths, after a folded section with an error has opened. Returns how to cancel. */
export function focusField(frame: HTMLElement | null, paths: readonly string[]): () => void {
  const id = requestAnimationFrame(() => {
    const fields = [...(frame?.querySelectorAll<HTMLElement>("[data-field]") ?? [])];
    const isOne = ({ dataset }: HTMLElement) => paths.includes(dataset["field"] ?? "");
    const field = fields.find(isOne) ?? nearest(frame, paths[0] ?? "");
    field?.scrollIntoView({ block: "center" });
    field?.querySelector<HTMLElement>("input, textarea, button")?.focus();
  });
  return () => cancelAnimationFrame(id);
}

/** The field at a path, else its nearest ancestor. */
function nearest(frame: HTMLElement | null, path: string): HTMLElement | null {
  if (frame === null || path === "") return null;
  const found = frame.querySelector<HTMLElement>(`[data-field="${CSS.escape(path)}"]`);
  return found ?? nearest(frame, path.split(".").slice(0, -1).join("."));
}
