// Revisions: which page of the history to draw.
import type { PageProps } from "../../pages.ts";
import { RestorePreview } from "./restore-preview.tsx";
import { RevisionDetail } from "./revision-detail.tsx";
import { RevisionList } from "./revision-list.tsx";

export default function RevisionsPage({ id, part }: PageProps) {
  if (id === null) return <RevisionList />;
  return part === "restore" ? <RestorePreview id={id} /> : <RevisionDetail id={id} />;
}
