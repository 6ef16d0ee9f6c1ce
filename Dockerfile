# The gateway, the simulated worker and the load generator, in one image.
#
#   docker build --build-arg NODE_DIGEST="$(docker buildx imagetools inspect node:20-bookworm-slim --format '{{.Manifest.Digest}}')" -t warmpath .
#
# The digest is asked of the registry and never written down here: a build names the base it was made on, and a rebuild gets
# the base's security fixes. Paths in RUN are relative, so that `npm run check:deploy` can run each stage in a clean folder.

ARG NODE_IMAGE=docker.io/library/node:20-bookworm-slim
ARG NODE_DIGEST

FROM ${NODE_IMAGE}@${NODE_DIGEST} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --include=dev --loglevel=error
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY deploy/image ./deploy/image
COPY src ./src
COPY web ./web
RUN node scripts/set-up.mjs --rebuild
RUN node deploy/image/collect-optional.mjs optional

FROM ${NODE_IMAGE}@${NODE_DIGEST} AS production
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=dev --loglevel=error

FROM ${NODE_IMAGE}@${NODE_DIGEST} AS image
WORKDIR /app
COPY --from=production /app/package.json ./package.json
COPY --from=production /app/node_modules ./node_modules
COPY --from=build /app/optional ./node_modules
COPY --from=build /app/dist ./dist
COPY presets ./presets
COPY LICENSE ./LICENSE
# Nothing is written below /app: the root file system may be read-only.
ENV NODE_ENV=production WARMPATH_HOST=0.0.0.0
USER 1000:1000
EXPOSE 8000 8900
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WARMPATH_PORT || 8000}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/cli/main.js"]
CMD ["gateway"]
