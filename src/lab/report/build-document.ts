import { list, type ReportDocument, type Section, text } from "./document.ts";
import { buildFigures } from "./figures/build-figures.ts";
import type { ReportModel } from "./model.ts";
import { accountingSection } from "./sections/accounting.ts";
import { anatomySection } from "./sections/anatomy.ts";
import { balanceSection } from "./sections/balance.ts";
import { cacheSection } from "./sections/cache.ts";
import { capacitySection } from "./sections/capacity.ts";
import { clientSection } from "./sections/client.ts";
import { decisionSection } from "./sections/decision.ts";
import { expectedSection } from "./sections/expected.ts";
import { gpusSection } from "./sections/gpus.ts";
import { e2eSection, itlSection, ttftSection } from "./sections/latency.ts";
import { lostSection } from "./sections/lost.ts";
import { pairedSection } from "./sections/paired.ts";
import { provenanceSection } from "./sections/provenance.ts";
import { noiseSection, runsSection } from "./sections/runs.ts";
import { scalingSection } from "./sections/scaling.ts";
import { stationaritySection } from "./sections/stationarity.ts";
import { summarySection } from "./sections/summary.ts";
import { throughputSection } from "./sections/throughput.ts";
import { verdictSection } from "./sections/verdict.ts";

/** The sections in the order in which a reader needs them; each says so in one line where its inputs are missing. */
const SECTIONS: readonly ((model: ReportModel) => Section)[] = [
  verdictSection,
  accountingSection,
  summarySection,
  ttftSection,
  capacitySection,
  cacheSection,
  throughputSection,
  itlSection,
  e2eSection,
  scalingSection,
  stationaritySection,
  anatomySection,
  balanceSection,
  gpusSection,
  pairedSection,
  runsSection,
  noiseSection,
  lostSection,
  clientSection,
  decisionSection,
  expectedSection,
  provenanceSection,
];

/** The report as a document. */
export function buildDocument(model: ReportModel): ReportDocument {
  const problems: Section[] =
    model.problems.length === 0
      ? []
      : [
          {
            id: "problems",
            title: "What could not be used",
            blocks: [text("The rest is reported."), list(model.problems)],
          },
        ];
  const figures = buildFigures(model);
  const sections = SECTIONS.map((build) => {
    const section = build(model);
    return { ...section, blocks: [...(figures.get(section.id) ?? []), ...section.blocks] };
  });
  return { title: `Report: ${model.title}`, sections: [...problems, ...sections] };
}
