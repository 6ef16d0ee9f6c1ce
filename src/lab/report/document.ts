/** A report as a document, before it is Markdown or HTML. Texts may have **bold** and `code`, nothing else. */
export interface ReportDocument {
  readonly title: string;
  readonly sections: readonly Section[];
}

export interface Section {
  /** For links; stable. */
  readonly id: string;
  readonly title: string;
  readonly blocks: readonly Block[];
}

export type Block = TextBlock | ListBlock | TableBlock | FigureBlock;

export interface TextBlock {
  readonly kind: "text";
  readonly text: string;
}

export interface ListBlock {
  readonly kind: "list";
  readonly items: readonly string[];
}

export interface TableBlock {
  readonly kind: "table";
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
}

export interface FigureBlock {
  readonly kind: "figure";
  /** Name of its file, without ending. */
  readonly name: string;
  readonly title: string;
  readonly svg: string;
}

export interface Column {
  readonly title: string;
  /** Numbers stand on the right, names on the left. */
  readonly align: "left" | "right";
}

export function text(content: string): TextBlock {
  return { kind: "text", text: content };
}

export function list(items: readonly string[]): ListBlock {
  return { kind: "list", items };
}

/** A table; titles that begin with `<` are of columns on the left. */
export function table(title: string, columns: readonly string[], rows: readonly (readonly string[])[]): TableBlock {
  return {
    kind: "table",
    title,
    columns: columns.map((column) =>
      column.startsWith("<") ? { title: column.slice(1), align: "left" } : { title: column, align: "right" },
    ),
    rows,
  };
}
