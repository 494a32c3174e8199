// A cell of a list: its title stands beside the value where the table has no room for columns.
import type { ReactNode } from "react";

interface Props {
  readonly title: string;
  readonly children: ReactNode;
}

export function DetailCell({ title, children }: Props) {
  return (
    <td className="list-cell is-detail" data-title={title}>
      <div className="cell-value">{children}</div>
    </td>
  );
}
